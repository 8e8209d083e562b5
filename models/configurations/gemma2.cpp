#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_gemma2(ConfigurationReader& r) {
  r.read_gemma_shape("256000", 8192);
  r.set("output_norms", "true");
  r.read_window_pattern("4096", 2);
}

}  // namespace

extern const ConfigurationFamily gemma2{
    .name = "gemma2",
    .summary = "Gemma 2: norms before and after attention and dense layers, and a window in every second layer",
    .source = "Gemma Team, Gemma 2, 2024; Gemma2Config of transformers",
    .read = read_gemma2,
};

}  // namespace stagecraft::model_configurations
