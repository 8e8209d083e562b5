#pragma once

#include "sim/config/value.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// `plan.pipeline` and `plan.chunks`, the words of Megatron-LM beside `plan.stages`: a plan has as many stages as
/// pipeline ranks times chunks, the stages on each rank.

/// Writes `plan.stages` into a scenario, not yet checked, that has `plan.pipeline` instead; a plan without a planner is
/// balanced.
void add_stages(config::Value& tree);

/// Writes out both in a checked scenario, and `run.schedule.chunks` where the plan has them. Problems: numbers that
/// contradict each other, or the schedule.
void settle_pipeline(config::Value& tree, config::Problems&);

/// InputError where the plan has another number of pipeline ranks than `plan.pipeline` says.
void check_pipeline(const PlannedExperiment&);

/// Drops what an option of this name replaces: stages, or pipeline ranks and chunks, that the scenario has. With
/// `keeps_options`, values from earlier --set options stay, so that a contradiction between two options is found.
std::string drop_other_form(config::Value& tree, std::string_view option, bool keeps_options);
/// Notes where stages of an option took the place of pipeline ranks and chunks.
std::vector<std::string> pipeline_notes(const config::Value& tree);

}  // namespace stagecraft
