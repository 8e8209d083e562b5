// The search of the schedule `synthesised`: known orders, list schedules and local search, until the bound or the
// effort is reached.

#include "sim/schedule/synthesis/search.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/schedule/synthesis/candidate_pool.hpp"

namespace stagecraft::synthesis {
namespace {

constexpr std::size_t kPoolSize = 6;
constexpr double kLists = 0.5, kAnneal = 0.9;  // The shares of the effort at which the parts of the search end.
constexpr int kRounds = 3;

/// The order with every backward split into two adjacent halves.
Rows halved(const Rows& rows) {
  Rows result;
  for (const auto& row : rows) {
    auto& steps = result.emplace_back();
    for (const Step s : row) {
      if (s.kind() != kBackward) {
        steps.push_back(s);
        continue;
      }
      steps.emplace_back(kInputGradient, s.piece());
      steps.emplace_back(kWeightGradient, s.piece());
    }
  }
  return result;
}

bool has_halves(const Rows& rows) {
  for (const auto& row : rows)
    for (const Step s : row)
      if (s.kind() == kInputGradient) return true;
  return false;
}

}  // namespace

CandidatePool::CandidatePool(const SchedulingProblem& p, const ResourceLimits& l, const SearchGoal& a,
                             const LowerBound& bound)
    : problem(p), limit(l), goal(a), clock(p), bound_(a.period ? bound.period : bound.makespan) {}

double CandidatePool::add(const Rows& rows) {
  if (rows.empty()) return kInfinity;
  stop_point();
  const Score score = clock.score(rows, true);
  const double cost = goal.value(score);
  if (cost == kInfinity) return cost;
  if (best_.size() == kPoolSize && cost >= best_.back().cost) return cost;
  for (const FoundOrder& f : best_)
    if (f.cost == cost && f.rows == rows) return cost;
  if (!fits(problem, rows, limit)) return kInfinity;
  const auto where =
      std::upper_bound(best_.begin(), best_.end(), cost, [](double c, const FoundOrder& f) { return c < f.cost; });
  best_.insert(where, {rows, score, cost});
  if (best_.size() > kPoolSize) best_.pop_back();
  return cost;
}

bool CandidatePool::done() const {
  if (best_.empty()) return false;
  const Score& s = best_.front().score;
  return (goal.period ? s.period : s.makespan) <= bound_ * (1 + 1e-9);
}

std::vector<FoundOrder> search(const SchedulingProblem& problem, const ResourceLimits& limit, const SearchGoal& goal,
                               const std::vector<Rows>& seeds, const LowerBound& bound) {
  CandidatePool pool(problem, limit, goal, bound);
  for (const Rows& rows : seeds) {
    if (goal.split || !has_halves(rows)) pool.add(rows);
    if (goal.split) pool.add(halved(rows));
  }
  Rng rng(goal.seed, "synthesis");
  improve_lists(pool, rng, kLists * goal.effort);
  for (std::size_t round = 0; round < kRounds && round < pool.best().size(); ++round) {
    const double until = kLists + (kAnneal - kLists) * static_cast<double>(round + 1) / kRounds;
    const Rows from = pool.best()[round].rows;
    anneal(pool, rng, from, until * goal.effort);
  }
  polish(pool, goal.effort);
  return pool.best();
}

}  // namespace stagecraft::synthesis
