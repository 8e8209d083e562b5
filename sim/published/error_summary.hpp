#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/published/reproduce.hpp"

namespace stagecraft {

/// How far predictions are from published figures. Calibrated rows, identities, bounds and figures that did not run are
/// not among them.
struct ReproductionErrors {
  std::vector<double> errors = {};  ///< Simulated over published, minus one, in ascending order.
  int met = 0;                      ///< Predictions within the tolerance of their table.
  int identities = 0, identities_met = 0;
  int directions = 0, directions_met = 0;  ///< Bounds, sides and orders.

  /// The error that this share of the predictions does not exceed, without its sign; 0 where there are none.
  double quantile_of_size(double share) const;
  /// The share of predictions that are not farther off than this.
  double share_within(double size) const;
};
ReproductionErrors error_summary(std::span<const Reproduction>);

/// The start of the page of reproduced results: cards with the errors, their histogram, and a line for each
/// publication. Empty where nothing is predicted.
std::string error_summary_html(std::span<const Reproduction>);

}  // namespace stagecraft
