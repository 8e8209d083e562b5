#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/idle.hpp"

namespace stagecraft {

/// Where the time of a device goes in one period. Every moment belongs to one class, so the classes sum to the period.
struct TimeClasses {
  TimeByClass spent;    ///< Computation and optimizer; exposed collectives by axis; exposed messages; host memory.
  Seconds bubble;       ///< Waiting for other stages: the pipeline fills or drains, or another stage still computes.
  Seconds unexplained;  ///< Waiting for nothing that the program knows.

  Seconds compute() const { return spent.kernels() + spent.launches; }
  Seconds total() const { return spent.total() + bubble + unexplained; }
};

/// What a device waits for on the wire.
inline Seconds exposed_communication(const TimeClasses& c) { return c.spent.collectives() + c.spent.messages; }

/// One of the few classes of time that people compare: its name in text and in files, and what it contains.
struct MainTimeClass {
  std::string_view name, key, contents;
  Seconds (*seconds)(const TimeClasses&);
};
/// They sum to the period as well.
std::span<const MainTimeClass> main_time_classes();

/// The classes of each device in a part of the run, scaled to one period. `idle` is what each device waits for in this
/// part. The classes of an op have the shares of its time that were planned. All zero for a device without ops.
IdVector<DeviceId, TimeClasses> time_classes(const Program&, const Timeline&, const IdVector<DeviceId, IdleTimes>& idle,
                                             const TimeSpan&, Seconds period);

/// Rates for one device, at the period of a run.
struct DeviceRates {
  double tokens_per_second = 0;
  FlopRate model;               ///< Operations of the model, without recomputation.
  double of_peak = 0;           ///< Model FLOPs utilization.
  double hardware_of_peak = 0;  ///< Hardware FLOPs utilization: with recomputation; run() adds it.
  double joules_per_token = 0;  ///< Zero where power is not known.
};

std::optional<DeviceRates> device_rates(const Program&, double samples_per_second);

/// The class of time in which a collective counts: "tensor", "data".
std::string_view class_name(Purpose);
/// "61.2 % products + 12.0 % tensor + 9.1 % bubble": the largest first.
std::string to_text(const TimeClasses&);

/// Members such as `products_s`, and `bubble_s`. They sum to the period.
Json classes_json(const TimeClasses&);
/// Members such as `compute_s`, `exposed_collectives_s` and `bubble_s`. They sum to the period.
Json main_classes_json(const TimeClasses&);
/// The planned time of each pass of each stage by class.
Json passes_json(const Program&);
config::Field classes_field();
config::Field main_classes_field();
config::Field passes_field();

}  // namespace stagecraft
