// Simulates one order of an experiment on `ideal`, for the schedule `synthesised`, which searches for one.

#include "sim/experiment/order_evaluation.hpp"

#include <algorithm>

#include "backends/backend.hpp"
#include "sim/program/check.hpp"

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
    const Report report = measure(program, timeline, cluster);
    OrderResult played{report.makespan, report.period, memory_needs(program)};
    for (const DeviceId d : played.memory.ids())
      played.memory[d] = std::max(played.memory[d], report.devices[d].memory.total);
    return played;
  } catch (const Infeasible&) {
    return {};
  }
}

}  // namespace stagecraft
