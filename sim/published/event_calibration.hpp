#pragma once

#include <string>
#include <vector>

#include "sim/published/prediction_errors.hpp"

namespace stagecraft {

/// The share of the peak of one device type in one number format, fitted to published runs that are simulated event by
/// event. It is the only number that is fitted.
struct EventFit {
  std::string device;
  NumberFormat format = NumberFormat::Bf16;  ///< Formats of 16 bits count as one.
  int runs = 0;
  double share = 0, fitted = 0;
  double closed_form = 0;     ///< Mean absolute error of the closed form with the shipped share.
  double error_before = 0;    ///< Mean absolute error of simulations with the shipped share.
  double error_after = 0;     ///< Mean absolute error of simulations with the fitted share.
  double error_left_out = 0;  ///< Mean error of each run, simulated with a share fitted to the others.
};

/// One fit for each device type and format with two runs or more, without the small models, whose passes are bound by
/// launches. Each run is simulated with five shares; times in between follow by interpolation of logarithms.
std::vector<EventFit> fit_with_events(std::span<const PredictionSet>, const AcceleratorsByName&);

std::string to_text(const std::vector<EventFit>&);

}  // namespace stagecraft
