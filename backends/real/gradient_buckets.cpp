// Which part of a gradient each bucket of a Program sums, and after which operation of the backward that part is
// complete.

#include "backends/real/gradient_buckets.hpp"

#include <algorithm>
#include <tuple>

namespace stagecraft::real {
namespace {

bool makes_weight_gradient(InstructionKind kind) {
  return kind == InstructionKind::Backward || kind == InstructionKind::WeightGradient;
}

}  // namespace

GradientBuckets::GradientBuckets(const Program& p) {
  std::map<std::tuple<StageId, DeviceId, int>, std::vector<int>> buckets;  // By stage, first device and update.
  for (int n = 0; n < std::ssize(p.collectives); ++n) {
    const CollectiveCall& c = p.collectives[n];
    if (c.bucket < 0) continue;
    const Instruction& first = p.at(c.first);
    buckets[{first.stage, first.device, first.update()}].push_back(n);
  }
  for (auto& [update, collectives] : buckets) {
    std::stable_sort(collectives.begin(), collectives.end(),
                     [&](int a, int b) { return p.collectives[a].bucket < p.collectives[b].bucket; });
    double total = 0, before = 0;
    for (const int n : collectives) total += static_cast<double>(p.shape(p.collectives[n]).bytes);
    for (std::size_t k = 0; k < collectives.size(); ++k) {
      const double bytes = static_cast<double>(p.shape(p.collectives[collectives[k]]).bytes);
      const double part = total > 0 ? bytes / total : 1.0 / static_cast<double>(collectives.size());
      const double through = k + 1 == collectives.size() ? 1 : before + part;
      shares_[collectives[k]] = {before, through};
      before = through;
    }
    for (const int n : collectives) {
      const CollectiveCall& c = p.collectives[n];
      for (int m = 0; m < c.members; ++m) {
        const Instruction& member = p.at(c.member(m));
        for (const InstructionId w : p.waits_for(c.member(m)))
          if (makes_weight_gradient(p.at(w).kind) && p.at(w).device == member.device && p.at(w).stage == member.stage)
            waiting_[w].push_back({c.member(m), n, c.after});
      }
    }
  }
}

ShardRange GradientBuckets::range(int collective, std::int64_t numbers) const {
  const Share& share = shares_.at(collective);
  const auto count = [&](double part) { return static_cast<std::int64_t>(static_cast<double>(numbers) * part); };
  const std::int64_t first = numbers - count(share.through);
  return {first, numbers - count(share.before) - first};
}

std::span<const WaitingSum> GradientBuckets::waiting_for(InstructionId backward) const {
  const auto it = waiting_.find(backward);
  return it == waiting_.end() ? std::span<const WaitingSum>{} : std::span<const WaitingSum>(it->second);
}

std::int64_t summed_from(const StageNet& net, std::size_t n) {
  std::int64_t from = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const Node& node = net.nodes[k];
    if (node.count > 0 && node.weights < net.dense_weights) from = std::max(from, node.weights + node.count);
  }
  return from;
}

}  // namespace stagecraft::real
