// Sums how long each GPU in a trace runs computation, communication and both at once, for --overlap of `import kineto`
// and `import nsight`.

#include "sim/interchange/imports/stream_overlap.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/trace_events.hpp"

namespace stagecraft {
namespace {

struct Interval {
  double start, end;
};
using Intervals = std::vector<Interval>;

struct KernelStream {
  Intervals kernels;
  double time = 0, communication = 0;

  bool communicates() const { return communication > time / 2; }
};

bool is_communication(const std::string& kernel) {
  constexpr const char* kNames[] = {"nccl", "Nccl", "nvshmem", "::ep::", "deep_ep"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return kernel.find(name) != std::string::npos; });
}

/// Disjoint intervals in order.
Intervals merged(Intervals list) {
  std::sort(list.begin(), list.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  Intervals result;
  for (const Interval& one : list)
    if (!result.empty() && one.start <= result.back().end)
      result.back().end = std::max(result.back().end, one.end);
    else
      result.push_back(one);
  return result;
}

double length_of(const Intervals& list) {
  double sum = 0;
  for (const Interval& one : list) sum += one.end - one.start;
  return sum;
}

/// Time in which both are busy; both are merged.
double overlap_of(const Intervals& a, const Intervals& b) {
  double sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    a[i].end < b[j].end ? ++i : ++j;
  }
  return sum;
}

using Streams = std::map<std::string, KernelStream>;

void append_device(const std::string& device, const Streams& streams, std::string& csv) {
  Intervals computation, communication, kernels;
  for (const auto& [name, stream] : streams) {
    Intervals& list = stream.communicates() ? communication : computation;
    list.insert(list.end(), stream.kernels.begin(), stream.kernels.end());
    kernels.insert(kernels.end(), stream.kernels.begin(), stream.kernels.end());
  }
  computation = merged(std::move(computation)), communication = merged(std::move(communication));
  kernels = merged(std::move(kernels));
  const auto row = [&](const std::string& what, double microseconds) {
    csv += fmt::format("{},{},{:.3f}\n", device, what, microseconds / 1e3);
  };
  const double span = kernels.back().end - kernels.front().start;
  row("span", span);
  row("computation", length_of(computation));
  row("communication", length_of(communication));
  row("both", overlap_of(computation, communication));
  row("neither", span - length_of(kernels));
  for (const auto& [name, stream] : streams)
    row(fmt::format("stream {} ({})", name, stream.communicates() ? "communication" : "computation"),
        length_of(merged(stream.kernels)));
}

}  // namespace

std::string stream_overlap_csv(std::string_view text, const std::string& file) {
  const TraceDocument trace = read_trace_events(text, file);
  trace.require_finished(file);
  std::map<std::string, Streams> devices;
  for (const TraceEvent& event : trace.events) {
    if (event.category != "kernel") continue;
    const auto slash = event.thread.find('/');
    std::string name = event.thread.substr(slash + 1);
    if (constexpr std::string_view kOldPrefix = "stream "; name.starts_with(kOldPrefix))
      name.erase(0, kOldPrefix.size());
    KernelStream& stream = devices[event.thread.substr(0, slash)][name];
    stream.kernels.push_back({event.start, event.end()});
    stream.time += event.duration;
    if (is_communication(event.name)) stream.communication += event.duration;
  }
  if (devices.empty())
    throw InputError({{{file, 0, 0},
                       {},
                       "the trace has no kernel of a GPU",
                       "profile with torch.profiler.ProfilerActivity.CUDA",
                       "trace"}});
  std::string csv = "device,what,milliseconds\n";
  for (const auto& [device, streams] : devices) append_device(device, streams, csv);
  return csv;
}

}  // namespace stagecraft
