#pragma once

#include "backends/real/clocks.hpp"
#include "backends/real/processes/wire.hpp"

namespace stagecraft::real {

/// How the clock here relates to that of the first process. All processes call it at the same time. FailedElsewhere
/// where another one has failed instead, BackendError where it is silent.
ClockReading read_first_clock(Patience);

}  // namespace stagecraft::real
