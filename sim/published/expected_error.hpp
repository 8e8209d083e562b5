#pragma once

#include <string>

#include "sim/experiment/experiment.hpp"
#include "sim/published/prediction_errors.hpp"

namespace stagecraft {

/// How far predictions of measured runs like an experiment are off.
struct ExpectedError {
  ErrorSummary errors;
  std::string runs;         ///< Which runs they are: "59 published runs on a100-80 in fp16".
  bool same_device = true;  ///< Otherwise no run of this device type was published, and all runs of all types count.
};

/// The errors of the closed form for the published runs on the device type of an experiment, in its number format if
/// there are at least five; without runs on that type, for all runs. Only for experiments with costs from shapes.
ExpectedError expected_error(const Experiment&);

/// "median error of 59 published runs on a100-80 in fp16; 13.5 % at the 90th percentile".
std::string to_text(const ExpectedError&);

}  // namespace stagecraft
