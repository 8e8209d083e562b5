#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/value.hpp"

namespace stagecraft {

/// The parts of a plan that may have a micro-batch size: the stages that it lists, or else the plan itself.
std::vector<config::Value*> sized_parts(config::Value& plan);

/// Replicas that share each micro-batch, for each of these parts of a checked plan; 1 where the planner chooses.
std::vector<int> sharing_replicas(const config::Value& plan);

/// Samples of the largest micro-batch of all replicas together, of a checked plan; 0 where the planner chooses.
std::int64_t largest_micro_batch(const config::Value& plan);

}  // namespace stagecraft
