#pragma once

#include <cstdint>
#include <string>

#include "sim/config/fields.hpp"
#include "sim/training/optimizer.hpp"

namespace stagecraft {

/// What is learned, and how; read by backends that really compute.
struct Training {
  std::string task = "teacher";  ///< Name in the catalog of tasks.
  OptimizerRule optimizer;
  std::uint64_t seed = 1;  ///< Seed of the initial weights and of the data.
  bool slots = false;      ///< Gradients of micro-batches are kept apart and added in micro-batch order at the update.
  int evaluate_every = 0;  ///< Updates between two evaluations; 0: none.
};

const config::MapSpec& training_fields();
Training read_training(const config::Value& checked);

}  // namespace stagecraft
