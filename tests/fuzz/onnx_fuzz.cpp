// Any bytes as an ONNX model: imported with open sizes filled in, or refused.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/onnx/import.hpp"
#include "sim/core/diagnostic.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const onnx::ImportedModel imported = onnx::import_model(bytes, "fuzz.onnx", {.unknown_is_zero = true});
    if (imported.notes.size() != imported.model.layers.size()) std::abort();
    // Views that become separate layers change neither work nor weights.
    const onnx::ImportedModel complete =
        onnx::import_model(bytes, "fuzz.onnx", {.unknown_is_zero = true, .keep_all = true});
    if (complete.model.parameters() != imported.model.parameters()) std::abort();
    if (complete.model.forward() != imported.model.forward()) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
