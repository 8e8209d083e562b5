#pragma once

#include <string>
#include <vector>

#include "sim/run/run.hpp"
#include "sim/run/scenario.hpp"

namespace stagecraft {

/// What a reader of the figures should know beside them, a line each: figures that no machine has, devices without
/// work that nobody left out on purpose, and gradients of tied weights that meet in training and, where a schedule does
/// not flush, not here.
std::vector<std::string> remarks(const Scenario&, const Prepared&);

/// The same before it runs; of one that cannot be laid out what is known of its cluster.
std::vector<std::string> remarks(const Scenario&);

/// Gradients of weights tied between devices whose exchange before each update is not simulated.
Bytes unexchanged_gradients(const Scenario&, const Prepared&);

}  // namespace stagecraft
