#pragma once

#include "sim/schedule/v_shape/rows.hpp"

// Steps that turn a repeated pattern into a schedule, in the order in which rows_from() takes them.

namespace stagecraft {

/// Replaces everything before the first I0 of each rank: forwards of chunk 0, then of both chunks in turn, then
/// gradient, weight gradient, and a forward of chunk 1 or else of chunk 0. False when there is no room.
bool rebuild_warm_up(VRows&);

/// Keeps only the first micro-batches.
void cut(VRows&, int micro_batches);

/// Few micro-batches need less memory than there is: ranks with room run their first weight gradients last.
void postpone_weights(VRows&, int peak);

/// Reschedules the end: the final input gradients two steps apart, so that those that go up the ranks leave rank 0 as
/// early as those that go down permit. False when there is no room.
bool rebuild_end(VRows&, int micro_batches);

/// Goes through all steps once and puts into each bubble the first later pass of the rank that can run there, without
/// more activations than some rank has already. Only ranks that received something are visited.
void fill_bubbles(VRows&, int micro_batches);

}  // namespace stagecraft
