// Simulates what searches compare, and measures what they compare it by: one order of an experiment on `ideal`, for the
// schedule `synthesised`, which searches for one, and a compiled experiment.

#include "sim/experiment/order_evaluation.hpp"

#include <algorithm>

#include "backends/backend.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/program/check.hpp"
#include "sim/result/memory.hpp"

namespace stagecraft {

std::optional<OrderResult> evaluate_order(const Schedule& iteration, const PlannedExperiment& p,
                                          const Cluster& cluster) {
  constexpr int kIterations = 4;
  const Experiment& e = p.experiment;
  LoweringOptions options = lowering_of(p);
  options.iterations = std::max(options.iterations, kIterations);
  try {
    const Schedule schedule = complete(iteration, p.plan, options.iterations);
    const Program program = lower(schedule, p.plan, p.costs, e.weights.rule, options);
    const Timeline timeline = get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {});
    const Report report = measure_times(program, timeline, cluster);
    OrderResult played{report.makespan, report.period, memory_needs(program)};
    const IdVector<DeviceId, MemoryPeak> peaks = MemoryHistory(program, timeline).peaks(cluster);
    for (const DeviceId d : played.memory.ids()) played.memory[d] = std::max(played.memory[d], peaks[d].total);
    return played;
  } catch (const Infeasible&) {
    return {};
  }
}

Outcome run_to_compare(const CompiledExperiment& c, const std::string& backend) {
  Outcome o;
  o.timeline = execute(c, backend);
  stop_point();
  o.report = measure_times(c.program, o.timeline, c.cluster());
  check_finite(o.report.makespan.value);
  IdVector<DeviceId, MemoryPeak> peaks = MemoryHistory(c.program, o.timeline).peaks(c.cluster());
  copy_to_counterparts(c.program, peaks);
  for (const DeviceId d : peaks.ids()) o.report.devices[d].memory = peaks[d];
  return o;
}

}  // namespace stagecraft
