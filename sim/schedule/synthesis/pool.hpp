#pragma once

#include <vector>

#include "sim/schedule/synthesis/search.hpp"

namespace stagecraft::synthesis {

/// The best orders so far, with what every part of the search needs to judge one.
class Pool {
 public:
  Pool(const Problem&, const Limit&, const Aim&, const Bound&);

  const Problem& problem;
  const Limit& limit;
  const Aim& aim;

  /// The cost of an order that fits; it is kept when it is among the best.
  double offer(const Rows&);
  double cost(const Rows& rows) { return aim.of(clock.score(rows, true)); }
  const std::vector<Found>& best() const { return best_; }

  /// Steps that were played, or took as long.
  double effort() const { return static_cast<double>(clock.steps_played()) + spent_; }
  void spend(double steps) { spent_ += steps; }
  /// So much is spent, or no order can be better than the best one.
  bool spent(double effort_allowed) const { return effort() >= effort_allowed || done(); }
  bool done() const;

  Clock clock;

 private:
  double bound_, spent_ = 0;
  std::vector<Found> best_;
};

}  // namespace stagecraft::synthesis
