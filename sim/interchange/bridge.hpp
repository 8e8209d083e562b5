#pragma once

#include <string>

#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/training_setup.hpp"

namespace stagecraft {

// A configuration of Megatron-Bridge is a recipe by its name, with overrides and the options of its launcher:
// "--nodes 2 --gpus-per-node 8 --recipe llama3_8b_pretrain_8gpu_h100_bf16_config train.micro_batch_size=2".

/// The code of the problem that recipes.csv does not have a recipe, whose arguments are not known then.
inline constexpr const char* kUnknownRecipe = "unknown-recipe";

/// InputError for unknown recipes and overrides.
TrainingSetup read_bridge(const std::string& text, const std::string& file, const SetupOptions&);

/// The recipe of the same model that needs the fewest overrides, and these. InputError where no recipe has the model.
FrameworkConfiguration bridge_overrides(const PlannedExperiment&);

}  // namespace stagecraft
