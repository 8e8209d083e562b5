// Reads a trace.json of Stagecraft back into a CSV with one row for each instruction, for `import trace`.

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/trace_events.hpp"
#include "sim/interchange/imports/traces.hpp"

namespace stagecraft {
namespace {

std::string whole(const TraceEvent& event, const char* argument) {
  const auto value = event.number(argument);
  return value ? std::to_string(*value) : "";
}

/// spans.csv has the number of an update in the column of micro-batches; its slice has it at the end of its name.
std::string number_of(const TraceEvent& event) {
  if (event.number("micro_batch")) return whole(event, "micro_batch");
  return event.name.substr(event.name.find_last_not_of("0123456789") + 1);
}

}  // namespace

TraceSpans read_stagecraft_trace(std::string_view text, const std::string& file) {
  const TraceDocument document = read_trace_events(text, file);
  document.require_finished(file);
  std::map<std::int64_t, const TraceEvent*> spans;
  std::size_t others = 0;
  for (const TraceEvent& event : document.events) {
    const auto id = event.number("id");
    if (!id || !event.number("iteration") || !event.number("stage")) {
      ++others;
      continue;
    }
    if (!spans.emplace(*id, &event).second)
      throw InputError({{{file, 0, 0}, {}, fmt::format("two slices have the id {}", *id), "give one trace", "trace"}});
  }
  if (spans.empty())
    throw InputError({{{file, 0, 0},
                       {},
                       "no slice has the id, the stage and the iteration that Stagecraft writes",
                       "a trace of PyTorch's profiler is imported with: stagecraft import kineto FILE --layer CLASS",
                       "trace"}});
  TraceSpans result{"id,instruction,device,stage,micro_batch,iteration,version,bytes,start_ns,end_ns\n", {}};
  for (const auto& [id, event] : spans) {
    const std::string pid = event->thread.substr(0, event->thread.find('/'));
    const auto device = document.processes.find(pid);
    const std::string bytes = whole(*event, "bytes");
    result.csv +=
        fmt::format("{},{},{},{},{},{},{},{},{:.3f},{:.3f}\n", id, csv_cell(event->name),
                    csv_cell(device == document.processes.end() ? pid : device->second), whole(*event, "stage"),
                    number_of(*event), whole(*event, "iteration"), whole(*event, "version"),
                    bytes.empty() ? "0" : bytes, event->start * 1e3, event->end() * 1e3);
  }
  result.notes.push_back(fmt::format("taken: {}", pluralize(std::ssize(spans), "slice")));
  if (others > 0)
    result.notes.push_back(fmt::format("left out: {} without the id of an instruction (changes of the cluster)",
                                       pluralize(static_cast<std::int64_t>(others), "slice")));
  return result;
}

}  // namespace stagecraft
