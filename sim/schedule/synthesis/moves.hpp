#pragma once

#include "sim/core/random.hpp"
#include "sim/schedule/synthesis/pool.hpp"

namespace stagecraft::synthesis {

/// Moves single steps within the critical path of an order, from `from` on, half the time with the same step on stages
/// next to it, since a warm-up or an end changes its pattern on all ranks or not at all; worse orders are taken with a
/// chance that falls to nothing while the effort is spent (simulated annealing over the critical blocks of Nowicki and
/// Smutnicki, Management Science 42, 1996).
void anneal(Pool&, Rng&, const Rows& from, double effort);

/// Tries every order of windows of a few steps along the critical path of the best order until none is better.
void polish(Pool&, double effort);

}  // namespace stagecraft::synthesis
