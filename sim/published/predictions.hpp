#pragma once

#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/cost/closed_form.hpp"

namespace stagecraft {

/// A run whose iteration was measured.
struct MeasuredRun {
  std::string name, device;
  TrainingRun run;
  Seconds measured;
  Bytes memory{};              ///< On the fullest device; zero where it was not published.
  bool whole_process = false;  ///< The memory is that of nvidia-smi, which counts the communicators, too.

  /// What the process has beside the states and activations that a plan knows.
  Bytes process_memory() const { return whole_process ? communicator_memory(run) : Bytes{}; }
};

/// Measured runs of one publication: a file of scenarios/predictions.
struct PredictionSet {
  std::string name, title, source;
  std::string calibration;  ///< Which constants of the model were fitted to these runs.
  std::string peers;        ///< Errors that other simulators publish for runs of this source; may be empty.
  /// Group of the ablation that its runs belong to; none where it takes no part.
  enum class AblationGroup { None, Large, Small } ablation = AblationGroup::None;
  std::vector<MeasuredRun> runs;
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
