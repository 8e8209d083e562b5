#pragma once

#include "backends/real/clock_reading.hpp"

namespace stagecraft::real {

/// All processes read at the same time. Of many questions the one that was answered fastest counts.
ClockReading read_clock();

}  // namespace stagecraft::real
