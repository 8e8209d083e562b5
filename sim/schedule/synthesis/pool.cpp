#include "sim/schedule/synthesis/pool.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"

namespace stagecraft::synthesis {
namespace {
constexpr std::size_t kKept = 6;
}

Pool::Pool(const Problem& p, const Limit& l, const Aim& a, const Bound& bound)
    : problem(p), limit(l), aim(a), clock(p), bound_(a.period ? bound.period : bound.makespan) {}

double Pool::offer(const Rows& rows) {
  if (rows.empty()) return kInfinity;
  const Score score = clock.score(rows, true);
  const double cost = aim.of(score);
  if (cost == kInfinity) return cost;
  if (best_.size() == kKept && cost >= best_.back().cost) return cost;
  for (const Found& f : best_)
    if (f.cost == cost && f.rows == rows) return cost;
  if (!fits(problem, rows, limit)) return kInfinity;
  const auto where =
      std::upper_bound(best_.begin(), best_.end(), cost, [](double c, const Found& f) { return c < f.cost; });
  best_.insert(where, {rows, score, cost});
  if (best_.size() > kKept) best_.pop_back();
  return cost;
}

bool Pool::done() const {
  if (best_.empty()) return false;
  const Score& s = best_.front().score;
  return (aim.period ? s.period : s.makespan) <= bound_ * (1 + 1e-9);
}

}  // namespace stagecraft::synthesis
