#pragma once

#include "backends/simgrid/compat.hpp"

namespace stagecraft::sg {

/// The one engine that this process can have, set up for plain max-min sharing. Never destroyed: the process ends with
/// the simulation, and large platforms take long to take apart.
s4u::Engine& make_engine();

}  // namespace stagecraft::sg
