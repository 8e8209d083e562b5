#pragma once

#include "sim/schedule/v_rows.hpp"

namespace stagecraft {

/// Goes through all steps once and puts into each bubble the first later pass of the rank that can run there, without
/// more activations than there are on some rank already. Only ranks to which something came are looked at.
void fill_bubbles(VRows&, int micro_batches);

}  // namespace stagecraft
