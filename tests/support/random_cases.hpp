#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::test {

/// A plan with its costs, and how to run it. Everything from one source of whole numbers: pick(low, high), both ends
/// included, the low end being the simplest.
struct RandomCase {
  std::string schedule;
  std::string weights;
  bool update_often = false;  ///< After each micro-batch.
  Plan plan;
  StageCosts costs;
  LoweringOptions options;
};

/// The source that draws evenly.
struct Draw {
  Rng rng;
  int operator()(int low, int high) { return rng.integer(low, high); }
};

/// A chain, branches that join, or any DAG whose stages come in topological order.
template <class Pick>
void random_edges(Plan& plan, Pick&& pick) {
  const auto add = [&](int from, int to) {
    const double bytes = pick(0, 5) == 0 ? 0.0 : 1e3 * pick(1, 2000);
    plan.edges.push_back({StageId{from}, StageId{to}, Bytes{bytes}});
  };
  const int n = plan.stage_count(), shape = pick(0, 2);
  if (shape == 0)
    for (int s = 1; s < n; ++s) add(s - 1, s);
  if (shape == 1) {  // branches of one or more stages into the last
    for (int s = 0; s + 1 < n; ++s) add(s, pick(0, 1) == 0 && s + 2 < n ? s + 1 : n - 1);
  }
  if (shape == 2)
    for (int s = 1; s < n; ++s) {
      const int sure = pick(0, s);  // s itself: no stage at all has to come before
      for (int t = 0; t < s; ++t)
        if (t == sure || pick(0, 3) == 0) add(t, s);
    }
}

template <class Pick>
StageCost random_cost(Pick&& pick) {
  const auto seconds = [&] { return Seconds{1e-6 * pick(1, 3000)}; };
  const auto bytes = [&] { return Bytes{1e3 * pick(0, 5000)}; };
  StageCost cost;
  cost.forward = seconds();
  cost.input_gradient = seconds();
  cost.weight_gradient = seconds();
  cost.backward = cost.input_gradient + cost.weight_gradient;
  cost.recompute = seconds();
  cost.update = Seconds{1e-6 * pick(0, 500)};
  cost.touch = Seconds{1e-6 * pick(0, 100)};
  cost.memory.weights = bytes();
  cost.memory.gradients = cost.memory.weights;
  cost.memory.optimizer = 2 * cost.memory.weights;
  cost.memory.stash = bytes();
  cost.memory.recompute_stash = bytes();
  return cost;
}

/// What goes with the schedule, and where that never drains sometimes any other that is right there.
template <class Pick>
std::string random_weights(Pick&& pick, const std::string& schedule) {
  const char* const names[] = {"stash", "naive",     "vertical-sync", "spectrain", "spectrain-v2",
                               "xpipe", "pipeoptim", "geometric",     "pipemare",  "spike-compensation"};
  if (schedule == "pipedream") return names[pick(0, 9)];
  return std::string(get_from(schedules::catalog(), "schedule", schedule).weights);
}

/// Whether replicas may take turns: not where an order or weights count stages alone.
inline bool may_take_turns(const RandomCase& c) {
  const WeightsRule& rule = policy(c.weights);
  return c.schedule != "graph" && rule.forward != ForwardWeights::Vertical && !rule.assumes_staleness();
}

template <class Pick>
RandomCase random_case(Pick&& pick, int most_stages = 6) {
  RandomCase c;
  const char* const names[] = {"1f1b", "gpipe", "inference", "2bw", "graph", "graph", "graph", "pipedream"};
  c.schedule = names[pick(0, 7)];
  c.weights = random_weights(pick, c.schedule);
  const int stages = pick(1, most_stages);
  c.plan = chain_plan(stages, stages, 1);
  c.plan.edges.clear();
  random_edges(c.plan, pick);

  const bool mixed = c.schedule == "graph" && pick(0, 1) == 1;
  const int size = 1 << pick(0, 2);
  int largest = 1;
  for (Stage& stage : c.plan.stages) {
    stage.micro_batch_size = mixed ? 1 << pick(0, 2) : size;
    stage.group = mixed && pick(0, 3) == 0 ? 2 : 1;
    stage.shape.recomputation =
        c.schedule != "inference" && pick(0, 3) == 3 ? Recomputation::Full : Recomputation::None;
    largest = std::max(largest, stage.micro_batch_size * stage.group);
  }
  std::vector<DeviceId> devices;
  int turns = 1;
  for (Stage& stage : c.plan.stages) {
    if (may_take_turns(c) && pick(0, 3) == 3) stage.share = Share::MicroBatches;
    const int max_replicas = stage.share == Share::Samples ? std::min(3, stage.micro_batch_size) : 3;
    stage.place_on(device_range(0, pick(0, 2) == 2 ? pick(1, max_replicas) : 1));
    turns = std::lcm(turns, stage.turns());
    for (std::size_t i = 0; i < stage.leaders.size(); ++i)
      devices.emplace_back(static_cast<std::int64_t>(devices.size()));
  }
  const int needed = c.schedule == "2bw" ? static_cast<int>(devices.size()) - 1 : 1;
  c.plan.mini_batch = largest * turns * ((std::max(pick(1, 8), needed) + turns - 1) / turns);
  c.update_often = c.schedule == "pipedream" && pick(0, 3) == 3;
  for (std::size_t i = devices.size(); i > 1; --i) std::swap(devices[i - 1], devices[pick(0, static_cast<int>(i) - 1)]);
  IdVector<StageId, Bytes> gradients;  // Replicas sum one and the same tensor.
  for (Stage& stage : c.plan.stages) {
    gradients.push_back(random_cost(pick).memory.gradients);
    std::vector<StageCost> replicas;
    std::vector<DeviceId> placed;
    for (int r = 0; r < stage.replicas(); ++r) {
      placed.push_back(devices.back()), devices.pop_back();
      replicas.push_back(random_cost(pick));
    }
    c.costs.add(replicas);
    stage.place_on(std::move(placed));
  }
  c.plan.reductions = derive_reductions(c.plan);
  for (Reduction& r : c.plan.reductions) r.bytes = gradients[r.stages.front()];

  c.options.overlap = pick(0, 3) != 3;
  c.options.rendezvous = pick(0, 1) == 0;
  c.options.streams = static_cast<StreamModel>(pick(0, 3));
  c.options.fifo_sends = pick(0, 3) != 3;
  c.options.iterations = pick(1, 3);
  return c;
}

/// Up to two ties, each between any stages, where their gradients meet.
template <class Pick>
void add_ties(RandomCase& c, Pick&& pick) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", c.schedule);
  if (!def.flushes || !def.trains) return;
  std::vector<StageTie> ties;
  for (int t = pick(0, 2); t > 0; --t) {
    StageTie tie{{}, 1e3 * pick(1, 5000)};
    for (int s = 0; s < c.plan.stage_count(); ++s)
      if (pick(0, 1) == 1) tie.stages.push_back(s);
    if (tie.stages.size() > 1) ties.push_back(std::move(tie));
  }
  tie_stages(c.plan, ties);
}

inline Program program_of(const RandomCase& c) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", c.schedule);
  const auto options =
      options_of(def, c.update_often ? std::vector<std::string>{"update=micro_batch"} : std::vector<std::string>{});
  const Schedule schedule = build_schedule(def, {.plan = c.plan,
                                                 .costs = c.costs,
                                                 .iterations = c.options.iterations,
                                                 .options = read_options(def, options ? &*options : nullptr)});
  return lowered(schedule, c.plan, c.costs, c.options, c.weights, def.trains);
}

/// The program; nothing where its messages would block without end.
inline std::optional<Program> program_unless_deadlock(const RandomCase& c) {
  try {
    return program_of(c);
  } catch (const Infeasible& error) {
    CHECK(error.code() == "deadlock");
    return std::nullopt;
  }
}

inline std::string to_text(const RandomCase& c) {
  const char* const models[] = {"single", "pair", "direction", "none"};
  return c.schedule + ", " + c.weights + (c.options.overlap ? ", overlap" : ", blocking") +
         (c.options.rendezvous ? ", rendezvous, " : ", eager, ") + models[static_cast<int>(c.options.streams)] +
         (c.options.fifo_sends ? ", fifo, " : ", any order, ") + std::to_string(c.options.iterations) +
         " iterations\n" + to_text(c.plan);
}

}  // namespace stagecraft::test
