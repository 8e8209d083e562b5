// Any bytes as times of model chunks that Megatron-LM writes: finite times of layers, or refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/megatron_timing.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const MegatronTiming read = read_megatron_timing({reinterpret_cast<const char*>(data), size}, "timing", 2);
    if (read.model.layers.empty() || read.notes.empty()) std::abort();
    for (const Layer& layer : read.model.layers) {
      if (!layer.times) std::abort();
      for (const Seconds time : {layer.times->forward, layer.times->input_gradient, layer.times->weight_gradient})
        if (!std::isfinite(time.value) || time.value < 0) std::abort();
    }
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
