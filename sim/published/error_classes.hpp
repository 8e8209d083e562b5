#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/published/prediction_errors.hpp"
#include "sim/report/interval.hpp"

namespace stagecraft {

/// Runs whose predictions have errors of one distribution.
struct ErrorClass {
  std::string device;
  NumberFormat format = NumberFormat::Bf16;  ///< Formats of 16 bits count as one: they were calibrated together.
  bool small = false;    ///< A model of fewer than 1.4 billion parameters, whose passes launches bound.
  bool experts = false;  ///< A model with routed experts.
};
ErrorClass error_class(const MeasuredRun&);
ErrorClass error_class(const Experiment&, DeviceTypeId);

/// The share of runs that an interval holds.
inline constexpr double kIntervalCoverage = 0.8;

/// The distances of measured times from predicted ones, |measured / predicted - 1|, of all runs with a published time.
class ErrorDistribution {
 public:
  ErrorDistribution(std::span<const PredictionSet>, const AcceleratorsByName&);

  /// The interval of a class: with n runs the distance of rank ceil(0.8 (n + 1)), so that another run of the class is
  /// within it with a probability of at least 0.8 (split conformal prediction; Vovk et al., Algorithmic Learning in a
  /// Random World, 2005). Where a class has fewer than five runs, all formats of its device type count. Where these are
  /// fewer than five, or the share of the type is not `calibrated`, the distances of all runs of such models count,
  /// priced with the shares of each other type that was fitted: what a wrong share costs.
  PredictionInterval interval(const ErrorClass&, bool calibrated) const;

  /// The interval from all runs but one, or but one publication, to see whether it holds that. Nothing where fewer than
  /// five runs on the device type remain.
  std::optional<PredictionInterval> interval_without(const ErrorClass&, const MeasuredRun& left_out) const;
  std::optional<PredictionInterval> interval_without(const ErrorClass&, const PredictionSet& left_out) const;

 private:
  struct Distance {
    ErrorClass kind;
    double size = 0;
    const MeasuredRun* run = nullptr;
    const PredictionSet* set = nullptr;
  };
  template <class Accepts>
  std::optional<PredictionInterval> interval_if(const ErrorClass&, const Accepts&) const;
  PredictionInterval transferred_interval(const ErrorClass&) const;

  std::vector<Distance> distances_;
  std::vector<Distance> transferred_;  ///< With the share of another device type.
};

/// |measured / predicted - 1| of a run.
double prediction_distance(const MeasuredRun&, const Accelerator&);

/// The interval of the times of an experiment: the widest of its device types. Nothing where layers are not priced from
/// shapes: without `software`, or with given or measured times, or on a device type without figures for products.
std::optional<PredictionInterval> prediction_interval(const Experiment&);

/// How many published runs the intervals of their classes hold.
std::string coverage_text(std::span<const PredictionSet>, const AcceleratorsByName&);

}  // namespace stagecraft
