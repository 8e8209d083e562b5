// Any bytes as an export of Nsight Systems, which SQLite reads: a trace with finite times of layers, or refused.

#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/stream_overlap.hpp"
#include "sim/interchange/imports/traces.hpp"
#include "tests/fuzz/named_file.hpp"
#include "tests/fuzz/refusals.hpp"
#include "tools/stagecraft/nsight_trace.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const NamedFile file;
  read_or_refuse([&] {
    const NsightTrace trace = read_nsight_trace(file.write({reinterpret_cast<const char*>(data), size}));
    read_or_refuse([&] {
      const KinetoModel read = read_kineto(trace.json, "trace", {"layer"}, 1);
      for (const Layer& layer : read.model.layers)
        if (!layer.times || layer.times->forward.value < 0 || layer.times->input_gradient.value < 0) std::abort();
    });
    read_or_refuse([&] { static_cast<void>(stream_overlap_csv(trace.json, "trace")); });
  });
  return 0;
}
