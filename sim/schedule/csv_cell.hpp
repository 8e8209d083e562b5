#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/actions.hpp"

namespace stagecraft {

constexpr std::string_view kOverlapEnd = ")OVERLAP_F_B";

/// A cell without the quotes that Python's csv takes off too.
std::string_view without_quotes(std::string_view cell);

/// Appends an action, or a group of computations that runs as one. False when the cell does not match in full; then
/// something of it may have been appended.
bool read_cell(std::string_view cell, std::vector<Action>& row);

/// What is wrong with a cell that cannot be read, and what helps.
struct CellFault {
  std::string message, help;
};
CellFault fault_of(std::string_view cell);
std::string cell_help();  ///< How cells look.

}  // namespace stagecraft
