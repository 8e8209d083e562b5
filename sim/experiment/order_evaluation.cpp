// Simulates one order of an experiment on `ideal`, for the schedule `synthesised`, which searches for one.

#include "sim/experiment/order_evaluation.hpp"

#include <algorithm>

#include "backends/backend.hpp"
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
    const MemoryHistory history(program, timeline);
    for (const DeviceId d : played.memory.ids())
      played.memory[d] = std::max(played.memory[d], peak_of(history.curve(d), program, cluster, d).total);
    return played;
  } catch (const Infeasible&) {
    return {};
  }
}

}  // namespace stagecraft
