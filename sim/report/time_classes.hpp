#pragma once

#include <optional>
#include <string>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/program/program.hpp"
#include "sim/report/idle.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Where the time of a whole run goes, on the mean of the devices with instructions. What nothing hides counts; what
/// runs next to computation is not in it.
struct TimeClasses {
  TimeByClass spent;  ///< `data` has the sums of gradients, for which updates wait.
  Seconds bubble;     ///< The rest of the run: waiting for other stages, and for nothing that is on the wire.
  Seconds length;     ///< The sum of all.
};

/// `idle` is what each device waits for. Nothing where the program does not tell classes apart, or the run did not time
/// instructions. The classes of an op have the shares of its time that were planned.
std::optional<TimeClasses> time_classes(const Program&, const Timeline&, const IdVector<DeviceId, IdleTimes>& idle);

/// Rates for one device, at the period of a run.
struct DeviceRates {
  double tokens_per_second = 0;
  FlopRate model;               ///< Operations of the model, without recomputation.
  double of_peak = 0;           ///< Model FLOPs utilization.
  double hardware_of_peak = 0;  ///< Hardware FLOPs utilization: with recomputation; run() adds it.
  double joules_per_token = 0;  ///< Zero where power is not known.
};

std::optional<DeviceRates> device_rates(const Program&, double samples_per_second);

/// "products 61.2 %, tensor 12.0 %, ...": the largest first.
/// The class of time in which a collective counts: "tensor", "data".
std::string_view class_name(Purpose);
std::string to_text(const TimeClasses&);

/// Members such as `products_s`, and `bubble_s`. They sum to the length of the run.
Json classes_json(const TimeClasses&);
/// The planned time of each pass of each stage by class.
Json passes_json(const Program&);
config::Field classes_field();
config::Field passes_field();

}  // namespace stagecraft
