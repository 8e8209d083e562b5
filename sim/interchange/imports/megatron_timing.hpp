#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// A model whose layers are the model chunks that Megatron-LM's simulation of a pipeline measured, in the order of the
/// model: chunk 0 of each pipeline rank, then chunk 1.
struct MegatronTiming {
  ModelGraph model;
  std::vector<std::string> notes;  ///< What was taken, and what the file does not have.
};

/// Reads task_durations.json or finished_tasks.json of `--simulate-result-dir`. The time of a chunk is the mean over
/// its micro-batches, divided by `samples` of a micro-batch. InputError where a task is missing, twice or without a
/// time.
MegatronTiming read_megatron_timing(std::string_view text, const std::string& file, int samples);

}  // namespace stagecraft
