#pragma once

#include <string>
#include <vector>

#include "sim/published/fit.hpp"

namespace stagecraft {

/// Measured runs of one device type, from CSV: the first line names columns, which are fields of runs (`stagecraft
/// explain predictions` lists them; `seconds` is what was measured), and every other line is one of up to 1,000 runs.
/// InputError with the line of what is wrong.
PredictionSet read_runs_csv(const std::string& file, const std::string& device);

/// The file of a device type with the fitted shares and the fitted launch, complete in itself, and where they come
/// from.
std::string calibrated_device_file(const Accelerator&, const std::vector<Fit>&, const std::string& origin);

}  // namespace stagecraft
