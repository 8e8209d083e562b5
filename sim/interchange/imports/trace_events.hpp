#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

/// A complete event ("ph": "X") of a trace in Chrome's format; times in microseconds.
struct TraceEvent {
  std::string name;
  std::string
      category;  ///< As Kineto calls it today, also in older traces; a call of any runtime or driver is cuda_runtime.
  std::string thread;  ///< Process and thread, as one word.
  double start = 0, duration = 0;
  std::vector<std::pair<std::string, std::int64_t>> numbers = {};  ///< The whole numbers among the arguments.

  double end() const { return start + duration; }
  /// A whole number among the arguments.
  std::optional<std::int64_t> number(std::string_view argument) const;
};

/// The complete events of a trace. The rest of the text is not kept: a trace has millions of events.
struct TraceDocument {
  std::deque<TraceEvent> events = {};
  std::map<std::string, std::string> processes = {};  ///< Names of processes by their identifiers.
  int unfinished = 0;  ///< Events without a duration: the profiler stopped before they ended. Not in `events`.
  std::string first_unfinished = {};  ///< As "event 7, 'aten::mm'".

  /// InputError where an event is unfinished, for readers whose result would lack it.
  void require_finished(const std::string& file) const;
};

/// InputError where the text is no trace in Chrome's format, or an event has no start.
TraceDocument read_trace_events(std::string_view text, const std::string& file);

}  // namespace stagecraft
