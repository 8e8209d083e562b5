#pragma once

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// The program of a scenario becomes a folder --out with rank.N.et for each device and, where replicas reduce
/// gradients, groups.json, as ASTRA-sim reads them. What is different there goes to stderr. Returns the exit code.
int export_chakra(const Arguments&);

}  // namespace stagecraft
