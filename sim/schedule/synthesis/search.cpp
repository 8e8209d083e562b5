#include "sim/schedule/synthesis/search.hpp"

#include "sim/schedule/synthesis/breed.hpp"
#include "sim/schedule/synthesis/moves.hpp"
#include "sim/schedule/synthesis/pool.hpp"

namespace stagecraft::synthesis {
namespace {

// Shares of the effort.
constexpr double kBreed = 0.5, kAnneal = 0.9;
constexpr int kRounds = 3;

/// The same order with every backward in two halves, one behind the other.
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

std::vector<Found> search(const Problem& problem, const Limit& limit, const Aim& aim, const std::vector<Rows>& seeds,
                          const Bound& bound) {
  Pool pool(problem, limit, aim, bound);
  for (const Rows& rows : seeds) {
    if (aim.split || !has_halves(rows)) pool.offer(rows);
    if (aim.split) pool.offer(halved(rows));
  }
  Rng rng(aim.seed, "synthesis");
  breed(pool, rng, kBreed * aim.effort);
  for (std::size_t round = 0; round < kRounds && round < pool.best().size(); ++round) {
    const double until = kBreed + (kAnneal - kBreed) * static_cast<double>(round + 1) / kRounds;
    const Rows from = pool.best()[round].rows;
    anneal(pool, rng, from, until * aim.effort);
  }
  polish(pool, aim.effort);
  return pool.best();
}

}  // namespace stagecraft::synthesis
