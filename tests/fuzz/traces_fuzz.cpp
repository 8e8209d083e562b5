// Any bytes as a trace in Chrome's format: finite times of layers, busy times, rows of spans, or refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/stream_overlap.hpp"
#include "sim/interchange/imports/traces.hpp"
#include "tests/fuzz/refusals.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    const KinetoModel read = read_kineto(text, "trace", {"Block"}, 2);
    if (read.model.layers.empty() || read.notes.empty()) std::abort();
    for (const Layer& layer : read.model.layers)
      if (!layer.times || layer.times->forward.value < 0 || layer.times->input_gradient.value < 0) std::abort();
  });
  read_or_refuse([&] {
    if (stream_overlap_csv(text, "trace").find("device,what,milliseconds\n") != 0) std::abort();
  });
  read_or_refuse([&] {
    const TraceSpans spans = read_stagecraft_trace(text, "trace");
    if (spans.csv.find("id,instruction") != 0 || spans.notes.empty()) std::abort();
  });
  return 0;
}
