// Numbers the pairs of replicas of neighboring stages that share samples; the writer opens the channels of their
// messages by it.

#include "sim/program/replica_pairs.hpp"

#include <algorithm>

#include "sim/plan/overlap.hpp"

namespace stagecraft {
namespace {

/// The replicas of `to` that one of `from` has samples in common with, ascending.
std::vector<int> peers_of(const Stage& from, int replica, int micro_batches, const Stage& to) {
  std::vector<int> peers;
  for (int m = replica % from.turns(); m < micro_batches; m += from.turns())
    for_each_overlap(from, m, replica, to, [&](int, int r, int) {
      if (peers.empty() || peers.back() != r) peers.push_back(r);
    });
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace

ReplicaPairs::ReplicaPairs(const Plan& plan, int iterations) : first_row_{0}, first_{0} {
  for (const StageEdge& edge : plan.edges) {
    const Stage &from = plan.stage(edge.from), &to = plan.stage(edge.to);
    const int replicas = static_cast<int>(from.leaders.size());
    for (int r = 0; r < replicas; ++r) {
      const std::vector<int> peers = replicas == 1 && to.leaders.size() == 1
                                         ? std::vector<int>{0}
                                         : peers_of(from, r, plan.micro_batches(edge.from) * iterations, to);
      to_.insert(to_.end(), peers.begin(), peers.end());
      first_.push_back(to_.size());
    }
    first_row_.push_back(first_.size() - 1);
  }
}

int ReplicaPairs::index(int edge, int from, int to) const {
  const std::size_t row = first_row_[edge] + static_cast<std::size_t>(from);
  const auto begin = to_.begin() + static_cast<std::ptrdiff_t>(first_[row]);
  const auto end = to_.begin() + static_cast<std::ptrdiff_t>(first_[row + 1]);
  return static_cast<int>(std::lower_bound(begin, end, to) - to_.begin());
}

}  // namespace stagecraft
