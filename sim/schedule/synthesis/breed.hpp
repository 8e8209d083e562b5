#pragma once

#include "sim/core/random.hpp"
#include "sim/schedule/synthesis/pool.hpp"

namespace stagecraft::synthesis {

/// List schedules with genes that are changed a little again and again, from several beginnings.
void breed(Pool&, Rng&, double effort);

}  // namespace stagecraft::synthesis
