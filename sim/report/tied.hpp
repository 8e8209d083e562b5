#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Rows of a table, each with the gradients of tied weights that it leaves without their exchange.
using Unexchanged = std::vector<std::pair<std::string, Bytes>>;

/// Says which rows are faster than they would be with that exchange; empty where none is.
std::string unexchanged_text(const Unexchanged&);

}  // namespace stagecraft
