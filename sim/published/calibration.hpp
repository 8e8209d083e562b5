#pragma once

#include <string>
#include <vector>

#include "sim/published/predictions.hpp"

namespace stagecraft {

/// The share of the peak that one number format reaches, fitted to measured runs.
struct ShareFit {
  NumberFormat format = NumberFormat::Bf16;
  int runs = 0;
  double before = 0, after = 0;              ///< The share.
  double error_before = 0, error_after = 0;  ///< Mean absolute errors of the runs.
  double error_left_out = 0;                 ///< The mean error of each run, predicted from a fit to the others.
  double spread = 0;                         ///< Half the range of these fits, as a part of the share.
};

/// Measured runs of one device type, from CSV: the first line names columns, which are fields of runs (`stagecraft
/// explain predictions` lists them; `seconds` is what was measured), and every other line is a run. InputError with
/// the line of what is wrong.
PredictionSet read_runs_csv(const std::string& file, const std::string& device);

/// One share for each number format that has at least two runs; the only number that is fitted. Runs in a format with
/// one run are refused, because nothing would tell how good the fit is.
std::vector<ShareFit> fit_shares(const PredictionSet&, const Accelerator&);

/// The file of a device type with these shares, complete in itself, and where they come from.
std::string calibrated_device_file(const std::string& device, const std::vector<ShareFit>&, const std::string& origin);

}  // namespace stagecraft
