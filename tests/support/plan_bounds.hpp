#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/evaluation.hpp"
#include "sim/search/plan_table.hpp"
#include "sim/search/policies.hpp"
#include "sim/search/search_objective.hpp"
#include "sim/search/work_bound.hpp"

/// Simulations of plans against every lower bound that is known for them.
namespace stagecraft::test {

constexpr double kBoundRounding = 1 + 1e-9;
constexpr int kBoundIterations = 6;

struct BoundRatio {
  bool ran = false;
  double share = 0;  ///< The bound as a share of the simulated period.
  bool replicated = false;
  bool has_groups = false;   ///< Several devices compute a replica together, or divide its experts.
  bool has_pairs = false;    ///< Pairs of a forward and a backward hide exchanges.
  bool has_flows = false;    ///< Collectives are messages that share links.
  bool has_buckets = false;  ///< A sum of gradients is cut into buckets.
};

/// The plan on devices that have no more memory than this simulation of it needs.
inline PlannedExperiment with_little_memory(PlannedExperiment planned, const Report& report) {
  const auto cluster = std::make_shared<Cluster>(*planned.experiment.cluster);
  for (DeviceType& type : cluster->types) type.memory = type.memory_reserve = {};
  for (const DeviceId d : report.devices.ids()) {  // A program with groups has fewer devices than the cluster.
    if (!cluster->devices.contains(d)) continue;
    Bytes& memory = cluster->types[cluster->devices[d].type].memory;
    memory = std::max(memory, report.devices[d].memory.total);
  }
  planned.experiment.cluster = cluster;
  return planned;
}

/// Bounds that need no plan: the work of a micro-batch, in time and in energy, and that of the table of plans.
inline void check_bounds_without_plan(const CompiledExperiment& c, double period, const SearchObjective* energy,
                                      double joules) {
  const Experiment& e = c.experiment;
  bounds::BoundCache cache;
  try {
    CHECK(time_bound(c, cache).each.value * e.run.micro_batches <= period * kBoundRounding);
  } catch (const InputError&) {  // Some layer has no times on one of the devices.
  }
  const Stage& first = c.plan.stages.front();
  if (e.plan.planner->name != "balanced" || first.turns() > 1) return;
  WorkBound work(c);
  const std::vector<DeviceId> used = devices_of(c.plan);
  const int ranks = static_cast<int>(std::ssize(used)) / first.shape.degrees.devices();
  CHECK(e.run.micro_batches * work.micro_batch(e.plan, ranks, first.twin.valid() ? 2 : 1, used, {}).value <=
        period * kBoundRounding);
  if (!energy) return;
  AmountBound amount = energy->of_devices(used);
  amount.fixed += e.run.micro_batches * work.price(e.plan, ranks, used, *energy, {});
  CHECK(energy->amount(amount, {}, {}) <= joules * kBoundRounding);
}

inline BoundRatio ratio_of(const CompiledExperiment& c, double share) {
  const auto& stages = c.plan.stages;
  const auto& reductions = c.plan.reductions;
  const Program& program = c.program;
  return {
      .ran = true,
      .share = share,
      .replicated = std::any_of(reductions.begin(), reductions.end(),
                                [](const Reduction& r) { return r.source == ReductionSource::Replicas; }),
      .has_groups = std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.shape.degrees.divides(); }),
      .has_pairs = std::any_of(
          program.collectives.begin(), program.collectives.end(),
          [](const CollectiveCall& call) { return call.hidden && call.purpose == Purpose::ExpertActivation; }),
      .has_flows =
          std::any_of(program.collectives.begin(), program.collectives.end(),
                      [&](const CollectiveCall& call) { return call.shape >= 0 && program.shape(call).phases > 0; }),
      .has_buckets =
          std::any_of(reductions.begin(), reductions.end(), [](const Reduction& r) { return r.buckets.size() > 1; })};
}

/// Simulates an experiment on `ideal`, and compares with the bounds for its schedule. Where messages share links
/// nothing is shorter.
inline BoundRatio compare_with_bounds(const Experiment& e, const std::string& schedule, bool contended = false) {
  const PlannedExperiment planned = plan_experiment(e);
  const CompiledExperiment compiled = compile(planned);
  const PlanBound bound = plan_bound(planned, LinkCollectives(e.cluster));
  const Report report = run(compiled, "ideal").report;
  const double period = report.period.value, energy = report.energy.value / kBoundIterations;
  const SchedulingPolicy policy = scheduling_policies({schedule}, {}, e.software()).front();
  const auto shortest_of = [&](const PlanBound& b) {
    if (!policy.schedule->flushes) return b.work.value;
    return policy.splits ? b.period.value : std::max(b.period, b.unsplit).value;
  };
  const double shortest = shortest_of(bound);
  CHECK(bound.work.value <= bound.period.value * kBoundRounding);
  CHECK(shortest <= period * kBoundRounding);
  if (contended) CHECK(shortest <= run(compiled, "fluid").report.period.value * kBoundRounding);
  if (const auto& search = compiled.schedule.search; search && search->period)
    CHECK(search->bound.value <= period * kBoundRounding);
  const PlanBound little = plan_bound(with_little_memory(planned, report), LinkCollectives(e.cluster));
  CHECK(little.fits);
  CHECK(shortest_of(little) <= period * kBoundRounding);
  CHECK(shortest_of(little) >= shortest);
  const auto& types = e.cluster->types;
  if (std::all_of(types.begin(), types.end(), [](const DeviceType& t) { return t.busy.value > 0; })) {
    const SearchObjective objective(Objective::Energy, planned, kBoundIterations);
    AmountBound amount = objective.of_devices(devices_of(planned.plan));
    for (const auto& [type, work] : bound.work_of_type) amount.fixed += objective.work_price(type) * work.value;
    CHECK(objective.amount(amount, Seconds{shortest}, bound.work) <= energy * kBoundRounding);
    check_bounds_without_plan(compiled, period, &objective, energy);
  } else {
    check_bounds_without_plan(compiled, period, nullptr, 0);
  }
  return ratio_of(compiled, shortest / period);
}

/// The scenario with these settings; a plan that cannot be made, or does not fit, did not run.
inline BoundRatio compare_with_bounds(const std::string& file, std::vector<std::string> sets,
                                      const std::string& schedule, const std::string& options = "",
                                      bool contended = false) {
  sets.push_back("run.schedule=" + (options.empty() ? schedule : "{name: " + schedule + ", " + options + "}"));
  sets.push_back("run.iterations=" + std::to_string(kBoundIterations));
  CAPTURE(join(sets, "; "));
  try {
    return compare_with_bounds(load_experiment(file, sets), schedule, contended);
  } catch (const InputError&) {
  } catch (const Infeasible&) {
  }
  return {};
}

}  // namespace stagecraft::test
