#pragma once

#include "sim/schedule/v_rows.hpp"

namespace stagecraft {

/// What stood before the first I0 of each rank, laid anew: forwards of chunk 0, then of both chunks in turn, then
/// gradient, weights, forward of chunk 1 or else 0. False when there is no room.
bool lay_warm_up(VRows&);

/// Keeps the first micro-batches only.
void cut(VRows&, int micro_batches);

/// Few micro-batches need less memory than there is: ranks with room run their first weight gradients last.
void postpone_weights(VRows&, int peak);

/// The last gradients laid anew, two steps apart, so that those up the ranks leave rank 0 as early as those down it let
/// them. False when there is no room.
bool lay_end(VRows&, int micro_batches);

}  // namespace stagecraft
