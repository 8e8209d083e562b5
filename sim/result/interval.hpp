#pragma once

#include <optional>
#include <string>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// How far a measured time may be from a predicted one: the errors of predictions of published runs of the same class.
struct PredictionInterval {
  double half_width = 0;   ///< Largest distance of a measured time, as a share of the predicted one.
  double coverage = 0;     ///< Share of such runs whose measured time is within it.
  double median = 0;       ///< Median of that distance.
  int runs = 0;            ///< Runs of the class.
  std::string class_name;  ///< "published runs on a100-80 in fp16".
  bool calibrated = true;  ///< Otherwise the runs are priced with shares of other device types.
};

/// "58 ms ± 5.0 %", or the time alone where there is no interval.
std::string to_text(Seconds, const std::optional<PredictionInterval>&);
/// "± 12 %", or "up to 3.6 times as long" where its half is as long as the time, or longer.
std::string half_width_text(const PredictionInterval&);
/// "80 % of 59 published runs on a100-80 in fp16 are so close to their prediction; median 2.0 %".
std::string to_text(const PredictionInterval&);
/// Both as a line with a line break; empty where there is no interval.
std::string interval_line(const std::optional<PredictionInterval>&);

Json interval_json(const PredictionInterval&);
/// The member `interval` of files with predicted times.
config::Field interval_field();

}  // namespace stagecraft
