#pragma once

#include <string>

#include "sim/run/sweep/drive.hpp"

namespace stagecraft {

/// "820 of 2000 points, 335/s, 4 s left, 2 failed"; with a bar in front of it for a terminal.
std::string progress_text(const SweepProgress&, bool bar);

}  // namespace stagecraft
