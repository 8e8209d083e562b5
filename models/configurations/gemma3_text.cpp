#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_gemma3_text(ConfigurationReader& r) {
  r.read_gemma_shape("262208", 131072);
  r.set("query_key_norm", "true");
  r.set("output_norms", "true");
  const char* const pattern = r.find("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  r.read_window_pattern("4096", r.number(pattern, 6));
}

}  // namespace

extern const ConfigurationFamily gemma3_text{
    .name = "gemma3_text",
    .summary = "Gemma 3: as Gemma 2 with normalized heads, and a window in five of six layers",
    .source = "Gemma Team, Gemma 3 Technical Report, 2025; Gemma3TextConfig of transformers",
    .read = read_gemma3_text,
};

}  // namespace stagecraft::model_configurations
