#pragma once

#include <span>

#include "sim/program/program.hpp"

namespace stagecraft::des {

/// The time of what has not happened.
inline constexpr double kUnset = -1;

/// Throws Infeasible "deadlock" when some instruction has no end: how many, the first few of them, and what each waits
/// for.
void require_finished(const Program& program, std::span<const double> start, std::span<const double> end);

}  // namespace stagecraft::des
