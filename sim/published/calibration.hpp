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
  double error_left_out = 0;                 ///< Mean error of runs that a fit to the others predicts (folds_of()).
  double spread = 0;                         ///< Half the range of these fits, as a part of the share.
};

/// Measured runs of one device type, from CSV: the first line names columns, which are fields of runs (`stagecraft
/// explain predictions` lists them; `seconds` is what was measured), and every other line is one of up to 1,000 runs.
/// InputError with the line of what is wrong.
PredictionSet read_runs_csv(const std::string& file, const std::string& device);

/// One share for each number format that has at least two runs; the only number that is fitted. Runs in a format with
/// one run are refused, because nothing would tell how good the fit is.
std::vector<ShareFit> fit_shares(const PredictionSet&, const Accelerator&);

/// A number that a fit may change: the share of the peak in every number format of the runs, the time of a launch, or
/// the rate of the network cards.
enum class FreeNumber : std::uint8_t { Share, Launch, Card };

/// Numbers that were fitted together to all runs of a device type.
struct JointFit {
  struct Number {
    FreeNumber kind = FreeNumber::Share;
    NumberFormat format = NumberFormat::Bf16;  ///< Format of a share.
    double factor = 1;                         ///< Fitted over given value.
    double spread = 0;                         ///< Half the range of the fits without one run, as a part of the value.
  };
  std::vector<Number> numbers;
  int runs = 0;
  double error_before = 0, error_after = 0;  ///< Mean absolute errors of the runs.
  double error_left_out = 0;                 ///< Mean error of runs that a fit to the others predicts (folds_of()).

  /// The device type with the fitted shares and the fitted launch.
  Accelerator applied(Accelerator) const;
};

/// Fits the numbers with the smallest mean error. InputError where there are fewer than two runs for each number, and
/// where a number changes no predicted time by 1 % when it changes by a quarter: then the runs say nothing about it.
JointFit fit_together(const PredictionSet&, const Accelerator&, const std::vector<FreeNumber>&);

/// The file of a device type with the shares and the launch of a joint fit.
std::string calibrated_device_file(const Accelerator& fitted, const JointFit&, const std::string& origin);

/// The file of a device type with these shares, complete in itself, and where they come from.
std::string calibrated_device_file(const std::string& device, const std::vector<ShareFit>&, const std::string& origin);

}  // namespace stagecraft
