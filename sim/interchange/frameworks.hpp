#pragma once

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

// What to give a training framework so that it trains as a plan says: model shape, degrees, schedule, overlap,
// recomputation and number format. Each throws InputError with everything that the framework cannot express or would
// refuse, and the smallest change that it accepts.

/// Codes of reasons that no plan changes, and of schedules that a framework does not have.
inline constexpr const char *kModelRefusal = "framework-model", *kScheduleRefusal = "framework-schedule";

struct FrameworkConfiguration {
  std::string text;
  std::vector<std::string> notes;  ///< What the scenario says and the text does not.
};

/// Arguments of Megatron-LM's pretrain_gpt.py, one on each line.
FrameworkConfiguration megatron_arguments(const PlannedExperiment&);
/// The sections training, parallelism and activation_checkpoint of torchtitan's TOML file, for releases up to 0.2.2.
FrameworkConfiguration torchtitan_config(const PlannedExperiment&);
/// A Python file with a function that makes the configuration, for torchtitan's main branch of 2026-08-21.
FrameworkConfiguration torchtitan_function(const PlannedExperiment&);
/// DeepSpeed's JSON file. Code makes the pipeline, with as many stages as `pipeline.stages` says.
FrameworkConfiguration deepspeed_config(const PlannedExperiment&);

}  // namespace stagecraft
