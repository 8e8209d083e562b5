#include "sim/run/play.hpp"

#include <algorithm>

#include "backends/backend.hpp"
#include "sim/program/check.hpp"

namespace stagecraft {

std::optional<Played> play(const Schedule& iteration, const Prepared& p, const Scenario& scenario) {
  constexpr int kIterations = 4;
  LoweringOptions options = scenario.lowering;
  options.iterations = std::max(options.iterations, kIterations);
  try {
    const Schedule all = complete(iteration, p.plan, options.iterations);
    const Program program = lower(all, p.plan, p.costs, scenario.weights_rule, options);
    const Timeline timeline = get_from(backends::all(), "backend", "ideal").run(program, p.cluster, {});
    const Report report = measure(program, timeline, p.cluster);
    Played played{report.makespan, report.period, memory_needs(program)};
    for (std::size_t d = 0; d < played.memory.size(); ++d)
      played.memory[d] = std::max(played.memory[d], report.devices[d].memory.total);
    return played;
  } catch (const Infeasible&) {
    return {};
  }
}

}  // namespace stagecraft
