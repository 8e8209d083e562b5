// Makes the order of work of a planned experiment with its schedule, and checks it.

#include "sim/experiment/order_experiment.hpp"

#include <optional>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/experiment/order_evaluation.hpp"
#include "sim/experiment/places.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

using config::Value;

namespace {

Schedule built_order(const PlannedExperiment& p) {
  const Experiment& e = p.experiment;
  const ScheduleDef& def = *e.schedule.def;
  if (def.name == "synthesised") {  // One replica is searched faster than all, and finds the same order in any run.
    const LinkCollectives idle(e.cluster);
    if (const auto folded = fold_replicas(p, &idle)) return with_all_replicas(built_order(*folded), p.plan);
  }
  std::optional<Cluster> without;  // Clusters are large; only one that changes is copied.
  if (!e.cluster->changes.empty() || e.cluster->jitter.max_fraction > 0) without = without_changes(*e.cluster);
  const Cluster& rated = without ? *without : *e.cluster;
  const int iterations = e.run.lowering.iterations;
  return with_error_context(*e.source, "run", [&](const Value&) {
    check_size(p.plan, iterations, def.trains);
    const Activity activity(fmt::format("building the schedule '{}'", def.name));
    return build_schedule(def, {.plan = p.plan,
                                .costs = p.costs,
                                .iterations = iterations,
                                .options = read_options(*e.schedule.def, e.schedule.options.get()),
                                .cluster = &rated,
                                .one_send_at_a_time = e.run.lowering.fifo_sends,
                                .simulate = [&](const Schedule& one) { return evaluate_order(one, p, rated); }});
  });
}

}  // namespace

Schedule order_experiment(const PlannedExperiment& p) {
  stop_point();
  Schedule schedule = built_order(p);
  stop_point();
  check_order(schedule, p, /*with_cycles=*/false);
  return schedule;
}

Schedule with_iterations(const Schedule& order, const Plan& plan, int iterations_of_order, int iterations) {
  Schedule schedule = order;
  for (std::vector<Op>& row : schedule.ranks) {
    row.resize(row.size() / iterations_of_order);
    const std::size_t ops = row.size();
    for (int i = 1; i < iterations; ++i)
      for (std::size_t n = 0; n < ops; ++n) {
        Op op = row[n];
        op.micro += i * (op.kind == OpKind::Update ? order.updates_of(op.stage) : plan.micro_batches(op.stage));
        row.push_back(op);
      }
  }
  return schedule;
}

void check_order(const Schedule& schedule, const PlannedExperiment& p, bool with_cycles) {
  const Experiment& e = p.experiment;
  throw_if_any(
      validate(schedule, p.plan,
               {.iterations = e.run.lowering.iterations, .trains = e.schedule.def->trains, .cycles = with_cycles}),
      "schedule '" + e.schedule.name() + "'");
}

}  // namespace stagecraft
