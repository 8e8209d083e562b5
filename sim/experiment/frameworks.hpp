#pragma once

#include <string>

#include "sim/experiment/run.hpp"

namespace stagecraft {

// What to give a training framework so that it trains as a plan says: model shape, degrees, schedule, recomputation and
// number format. Each throws InputError with everything that the framework cannot express.

/// Arguments of Megatron-LM's pretrain_gpt.py, one on each line.
std::string megatron_arguments(const PlannedExperiment&);
/// The sections training, parallelism and activation_checkpoint of torchtitan's TOML file.
std::string torchtitan_config(const PlannedExperiment&);
/// DeepSpeed's JSON file. Code makes the pipeline, with as many stages as `pipeline.stages` says.
std::string deepspeed_config(const PlannedExperiment&);

}  // namespace stagecraft
