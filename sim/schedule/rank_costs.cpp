// Times and memory of each chunk on each rank, and the longest time of a message, for schedules that are found from the
// costs: `zb-1p`, `zb-2p`, `zb-v-auto` and `v-adaptive`.

#include "sim/schedule/rank_costs.hpp"

#include <algorithm>

#include "sim/cluster/link_table.hpp"
#include "sim/core/common_unit.hpp"

namespace stagecraft {

namespace {

double slowest_hop(const ScheduleInput& in) {
  double slowest = 0;
  if (!in.cluster) return slowest;
  const LinkTable links(*in.cluster);
  for (const StageEdge& edge : in.plan.edges) {
    const Stage &from = in.plan.stage(edge.from), &to = in.plan.stage(edge.to);
    if (from.leaders.front() == to.leaders.front()) continue;
    const Bytes bytes =
        edge.bytes * (static_cast<double>(from.micro_batch_size) / static_cast<double>(from.leaders.size()));
    slowest = std::max(slowest, links.message_time(from.leaders.front(), to.leaders.front(), bytes).value);
  }
  return slowest;
}

/// Times of the slowest replica in seconds.
RankCost cost_of(const ScheduleInput& in, StageId s) {
  RankCost cost;
  for (const StageCost& c : in.costs.replicas(s)) {
    cost.forward = std::max(cost.forward, c.forward.value);
    cost.input_gradient = std::max(cost.input_gradient, c.input_gradient.value);
    cost.weight_gradient = std::max(cost.weight_gradient, c.weight_gradient.value);
  }
  return cost;
}

}  // namespace

RankCosts rank_costs(const ScheduleInput& in) {
  double largest = 0;
  std::vector<double> times;
  const auto stash = [&](StageId s) { return in.costs.at(s, 0).memory.whole_stash().value; };
  for (int s = 0; s < in.costs.stages(); ++s) {
    largest = std::max(largest, stash(StageId{s}));
    const RankCost cost = cost_of(in, StageId{s});
    times.insert(times.end(), {cost.forward, cost.input_gradient, cost.weight_gradient});
  }
  const CommonUnit unit(times);
  RankCosts costs{{}, unit(slowest_hop(in))};
  for (const auto& stages : in.layout.stages) {
    auto& chunks = costs.ranks.emplace_back();
    for (const StageId s : stages) {
      RankCost cost = cost_of(in, s);
      for (double* time : {&cost.forward, &cost.input_gradient, &cost.weight_gradient}) *time = unit(*time);
      if (largest > 0) cost.memory = stash(s) / largest;
      chunks.push_back(cost);
    }
  }
  return costs;
}

config::Field memory_field(std::string fallback) {
  return config::real("memory", 0.01, 1e6)
      .fallback(std::move(fallback))
      .doc(
          "Activations that a rank may keep, as a multiple of the number of ranks: 1 is what the first rank of 1F1B "
          "needs. As in the paper, an input gradient frees half of an activation and a weight gradient the other half. "
          "A run frees all of it after the weight gradient, so ranks that delay weight gradients need more.");
}

}  // namespace stagecraft
