// Measures a run as a row of a table, decides which rows are among the shortest, and simulates a row again on `fluid`,
// where messages share links.

#include "sim/search/replay.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "sim/experiment/order_evaluation.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {

void measure_row(RunRow& row, const CompiledExperiment& c, const Outcome& outcome) {
  row.memory = fullest_device_memory(outcome.report, c.cluster());
  const RunView view = view_of(c, outcome);
  row.makespan = Seconds{metric_value("makespan_s", view)};
  row.period = Seconds{metric_value("period_s", view)};
  row.throughput = metric_value("throughput_samples_per_s", view);
  row.unexchanged = unexchanged_gradients(c);
  row.stages = static_cast<int>(metric_value("stages", view));
  row.devices = static_cast<int>(metric_value("devices", view));
  row.samples = metric_value("samples", view);
  row.tokens = row.samples * c.program.work.tokens;
}

ContendedResult contended_result(const CompiledExperiment& c, std::optional<Timeline>* timeline) {
  try {
    Outcome outcome = run_to_compare(c, kReplayBackend);
    const Report& report = outcome.report;
    static_cast<void>(fullest_device_memory(report, c.cluster()));
    if (timeline) *timeline = std::move(outcome.timeline);
    return {report.makespan, report.period, {}, report.energy / c.program.iterations};
  } catch (const Infeasible& e) {
    return {{}, {}, e.problem().message};
  }
}

bool Shortest::takes(Seconds time) {
  if (limit_ == 0) return false;
  // Times that differ in the last digits alone are one, so the first of them to come must not be all that is kept.
  constexpr double kSame = 1 + 1e-8;
  if (std::ssize(times_) < limit_) return times_.insert(time), true;
  if (time.value > times_.rbegin()->value * kSame) return false;
  if (time < *times_.rbegin()) times_.erase(std::prev(times_.end())), times_.insert(time);
  return true;
}

}  // namespace stagecraft
