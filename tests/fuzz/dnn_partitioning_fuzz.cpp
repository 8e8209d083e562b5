// Any bytes as an input of dnn-partitioning: layers that read only layers before them, with finite times and sizes, in
// a scenario that is YAML, or refused.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "models/dnn_partitioning.hpp"
#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"

using namespace stagecraft;

namespace {

void check_layer(const Layer& layer, LayerId id) {
  for (const LayerId input : layer.inputs)
    if (!(input < id)) std::abort();
  const LayerTimes& t = *layer.times;
  for (const double amount :
       {t.forward.value, t.input_gradient.value, t.weight_gradient.value, layer.parameters, layer.output.value})
    if (!std::isfinite(amount) || amount < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const DnnPartitioning read = read_dnn_partitioning(text, "f.json");
    if (read.devices < 1 || !(read.memory.value > 0) || read.model.layers.empty()) std::abort();
    std::set<std::string> names;
    for (const LayerId l : read.model.layers.ids()) {
      check_layer(read.model.layers[l], l);
      if (!names.insert(read.model.layers[l].name).second) std::abort();
    }
    config::Problems problems;
    static_cast<void>(config::parse_yaml(dnn_partitioning_scenario(read), "scenario", problems));
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; });
    if (plain && !problems.empty()) std::abort();  // Other bytes are refused again.
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
