#include "sim/schedule/rank_costs.hpp"

#include <algorithm>

#include "sim/cluster/link_table.hpp"

namespace stagecraft {

std::vector<std::vector<RankCost>> rank_costs(const ScheduleInput& in) {
  double largest = 0;
  const auto stash = [&](StageId s) { return in.costs.at(s, 0).memory.whole_stash().value; };
  for (int s = 0; s < in.costs.stages(); ++s) largest = std::max(largest, stash(StageId{s}));
  std::vector<std::vector<RankCost>> ranks;
  for (const auto& stages : in.layout.stages) {
    auto& chunks = ranks.emplace_back();
    for (const StageId s : stages) {
      RankCost cost;
      for (const StageCost& c : in.costs.replicas(s)) {
        cost.forward = std::max(cost.forward, c.forward);
        cost.input_gradient = std::max(cost.input_gradient, c.input_gradient);
        cost.weight_gradient = std::max(cost.weight_gradient, c.weight_gradient);
      }
      if (largest > 0) cost.memory = stash(s) / largest;
      chunks.push_back(cost);
    }
  }
  return ranks;
}

Seconds slowest_hop(const ScheduleInput& in) {
  Seconds slowest{0};
  if (!in.cluster) return slowest;
  const LinkTable links(*in.cluster);
  for (const StageEdge& edge : in.plan.edges) {
    const Stage &from = in.plan.stage(edge.from), &to = in.plan.stage(edge.to);
    if (from.devices().front() == to.devices().front()) continue;
    const Bytes bytes =
        edge.bytes * (static_cast<double>(from.micro_batch_size) / static_cast<double>(from.devices().size()));
    slowest = std::max(slowest, links.message_time(from.devices().front(), to.devices().front(), bytes));
  }
  return slowest;
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
