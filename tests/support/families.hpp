#pragma once

#include <string>
#include <vector>

#include "sim/result/report.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::test {

/// Seconds of one op on one chunk; dyadic, so that sums are exact and equal means equal.
struct OpTimes {
  double forward, input, weight;
};
constexpr OpTimes kUnitTimes{1, 1, 1};

struct ScheduleFigures {
  double bubble = 0, period = 0, busy = 0;  ///< `bubble`: makespan of one iteration minus the busiest device's work.
  double span = 0;                          ///< The longest from a device's first start to its last end.
  std::vector<double> activations;          ///< In chunks.
  double messages = 0;                      ///< For each micro-batch, both ways.
  Schedule order;
};

/// The figures of a schedule on equal stages without communication; `recompute` adds a forward to each backward.
inline ScheduleFigures figures(std::string_view name, int p, int v, int m, OpTimes t, const std::string& options = "{}",
                               bool recompute = false) {
  constexpr int kIterations = 4;  // the period is T(4) - T(3)
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const config::Value map = def.fields ? checked(options, *def.fields) : config::Value{};
  Plan plan = plan_for(def, p, v, m);
  for (Stage& stage : plan.stages) stage.shape.recomputation = recompute ? Recomputation::Full : Recomputation::None;
  StageCost cost = times(t.forward, t.input + t.weight);
  cost.input_gradient = Seconds{t.input};
  cost.weight_gradient = Seconds{t.weight};
  const StageCosts costs = uniform_costs(plan, cost);
  ScheduleFigures f;
  const auto report = [&](int iterations) {
    f.order = build_schedule(def, {.plan = plan,
                                   .costs = costs,
                                   .iterations = iterations,
                                   .options = read_options(def, def.fields ? &map : nullptr)});
    const Program program = lowered(f.order, plan, costs, pure_delays(iterations));
    const Cluster cluster = delay_cluster(program.devices, 0);
    const Timeline timeline = run_ideal(program, cluster);
    f.messages = static_cast<double>(program.transfers.size()) / (m * iterations);
    IdVector<DeviceId, double> first(static_cast<std::size_t>(program.devices), 1e300), last(first.size(), 0);
    for (const InstructionId n : program.instructions.ids()) {
      const Instruction& i = program.at(n);
      if (!i.is_compute() || i.kind == InstructionKind::Update) continue;
      double& begin = first[i.device];
      double& end = last[i.device];
      begin = std::min(begin, timeline.start[n]), end = std::max(end, timeline.end[n]);
    }
    f.span = 0;
    for (const DeviceId d : first.ids()) f.span = std::max(f.span, last[d] - first[d]);
    return measure(program, timeline, cluster);
  };
  const Report several = report(kIterations), one = report(1);
  for (const DeviceReport& d : one.devices) {
    f.busy = std::max(f.busy, d.busy.value);
    f.activations.push_back(static_cast<double>(d.memory.activations));
  }
  f.bubble = one.makespan.value - f.busy;
  f.period = several.period.value;
  return f;
}

}  // namespace stagecraft::test
