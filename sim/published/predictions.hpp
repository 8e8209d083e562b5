#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/number_format.hpp"
#include "sim/published/simulated_run.hpp"

namespace stagecraft {

/// A run whose iteration was measured.
struct MeasuredRun {
  std::string name, device;
  NumberFormat format = NumberFormat::Bf16;
  config::Value row;  ///< Its checked fields but for the name and what was measured: model, division, software.
  Seconds measured;
  Bytes memory{};               ///< On the fullest device; zero where it was not published.
  Bytes workspaces{};           ///< Buffers of cuBLAS, which the memory counts and a plan does not know.
  bool whole_process = false;   ///< The memory is that of nvidia-smi, not of an allocator.
  SimulatedRun predicted = {};  ///< predict() sets it.

  /// A field of the row that is a number of things.
  int count(const char* field) const;
  int devices() const;
  /// What the process has beside the states and activations that a plan knows, where the memory counts it: workspaces
  /// of cuBLAS, and for a whole process what NCCL keeps for the groups of the run. These are 544 MiB for a group of two
  /// and 688 MiB for a larger one (measured on four A100 with NVLink, NVIDIA/nccl#964); the groups are the tensor, data
  /// and model-parallel group, and one of two for each neighbor in the pipeline.
  Bytes process_memory() const;
};

/// Measured runs of one publication: a file of scenarios/predictions.
struct PredictionSet {
  std::string name, title, source;
  std::string calibration;  ///< Which constants of the model were fitted to these runs.
  std::string peers;        ///< Errors that other simulators publish for runs of this source; may be empty.
  std::vector<MeasuredRun> runs;
  std::map<std::string, int> not_predicted = {};  ///< Why runs could not be simulated, and how many; see predict().
};

/// The field table of such a file.
const config::MapSpec& prediction_fields();

/// Reads a checked map of those fields. InputError with the first row that is wrong.
PredictionSet read_predictions(const config::Value& checked);
/// Reads a file, or the file of scenarios/predictions of this name. InputError with all problems.
PredictionSet load_predictions(const std::string& given);
/// All files of scenarios/predictions, sorted by name.
std::vector<PredictionSet> load_all_predictions();

}  // namespace stagecraft
