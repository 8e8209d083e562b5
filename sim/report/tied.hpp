#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Names of rows, each with the bytes of tied gradients whose exchange its simulation leaves out.
using Unexchanged = std::vector<std::pair<std::string, Bytes>>;

/// Names the rows that look faster than they are, because that exchange is missing; empty where there are none.
std::string unexchanged_text(const Unexchanged&);

}  // namespace stagecraft
