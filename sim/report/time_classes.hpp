#pragma once

#include <optional>
#include <string>

#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

struct Report;

/// Where the time of a whole run goes, on the mean of the devices with instructions. What nothing hides counts; what
/// runs next to computation is not in it.
struct TimeClasses {
  TimeByClass spent;  ///< `data` has the sums of gradients, for which updates wait.
  Seconds waiting;    ///< The rest of the run: messages between stages, and the bubble.
  Seconds length;
};

/// Nothing where the program does not tell classes apart, or the run did not time instructions. The classes of an op
/// have the shares of its time that were planned.
std::optional<TimeClasses> time_classes(const Program&, const Timeline&);

/// Rates for one device, at the period of a run.
struct DeviceRates {
  double tokens_per_second = 0;
  FlopRate model;      ///< Operations of the model, without recomputation.
  double of_peak = 0;  ///< Model FLOPs utilization.
};

std::optional<DeviceRates> device_rates(const Program&, double samples_per_second);

/// "products 61.2 %, tensor 12.0 %, ...": the largest first.
std::string to_text(const TimeClasses&);

}  // namespace stagecraft
