#pragma once

#include <vector>

#include "backends/backend.hpp"
#include "backends/real/execute.hpp"
#include "sim/cost/profile.hpp"

namespace stagecraft::real {

/// Measures every kind of layer of a model, updates of several sizes and messages: the model runs whole, forward and
/// backward, on `threads` threads at once, each with a copy of its own; medians of the runs behind the first.
Profile measure(const ProfileRequest&, const KernelFactory&);

}  // namespace stagecraft::real
