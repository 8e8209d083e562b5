#pragma once

#include "sim/cluster/accelerator.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft {

/// The figures of a device type where this software runs: its shares of products times the factor of the stack and its
/// release, the shares of the attention kernel that the stack runs, and what its host takes to launch a kernel.
/// InputError where the device has no share of that kernel, although it has shares of others.
Accelerator figures_for(Accelerator, const SoftwareStack&);

/// The factor of the stack on the share of a device type in a format; null where it has none.
const ShareFactor* share_factor(const SoftwareStack&, const Accelerator&, NumberFormat);

/// The time of a launch on the host of a device type in this framework.
Seconds launch_time(const Accelerator&, const SoftwareStack&);

}  // namespace stagecraft
