#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// What is recorded at the end of an instruction.
enum class EndEvent : std::uint8_t { None, Plain, Timed };

/// Of each instruction, where only iterations are timed: nothing but for whom other streams wait, for the host to see
/// that things move, and for the last op of an iteration on each device, which is timed.
std::vector<EndEvent> end_events(const Program&);

/// Times of iterations from those events, which all are on one clock: of each instruction from the end of the iteration
/// before to that of its own.
void spread_over_iterations(const Program&, std::vector<double>& start, std::vector<double>& end);

}  // namespace stagecraft::cuda
