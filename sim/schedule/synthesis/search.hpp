#pragma once

#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/bounds.hpp"
#include "sim/schedule/synthesis/clock.hpp"

namespace stagecraft::synthesis {

/// What is looked for.
struct Aim {
  bool period = true;   ///< The period; else the first iteration. The other one decides between equals.
  bool split = true;    ///< Whether I and W may come apart.
  double effort = 1e8;  ///< Steps that may be played.
  std::uint64_t seed = 1;
  double of(const Score& s) const { return period ? s.period + kLess * s.makespan : s.makespan + kLess * s.period; }
  static constexpr double kLess = 1e-4;
};

/// An order and how long it takes.
struct Found {
  Rows rows;
  Score score;
  double cost = kInfinity;
};

/// Orders that fit, best first and no two equal: the given ones that fit, list schedules bred from several beginnings,
/// and the best of them with steps moved along what holds it up (simulated annealing over critical blocks, then every
/// order of short windows). Ends early where the bound is reached. The same for the same input.
std::vector<Found> search(const Problem&, const Limit&, const Aim&, const std::vector<Rows>& seeds, const Bound&);

}  // namespace stagecraft::synthesis
