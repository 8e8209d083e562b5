#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/published/simulated_predictions.hpp"
#include "sim/result/interval.hpp"

namespace stagecraft {

/// Runs whose predictions have errors of one distribution.
struct ErrorClass {
  std::string device;
  NumberFormat format = NumberFormat::Bf16;  ///< Formats of 16 bits count as one: they were calibrated together.
  std::string software;                      ///< The stack; names of one with other switches count as that one.
  bool small = false;    ///< A model of fewer than 1.4 billion parameters, whose passes launches bound.
  bool experts = false;  ///< A model with routed experts.
};
ErrorClass error_class(const MeasuredRun&);  ///< predict() has predicted it.
ErrorClass error_class(const Experiment&, DeviceTypeId);

/// The share of runs that an interval holds.
inline constexpr double kIntervalCoverage = 0.8;

/// The distances of measured times from predicted ones, |measured / predicted - 1|, of all runs with a published time.
class ErrorDistribution {
 public:
  /// predict() has predicted the runs.
  explicit ErrorDistribution(std::span<const PredictionSet>);

  /// The interval of a class: with n runs the distance of rank ceil(0.8 (n + 1)), so that another run of the class is
  /// within it with a probability of at least 0.8 (split conformal prediction; Vovk et al., Algorithmic Learning in a
  /// Random World, 2005). Only runs of its software count: constants of one framework say little of another. Where a
  /// class has fewer than five runs, or if asked, all formats of its device type count. Nothing where these are fewer
  /// than five.
  std::optional<PredictionInterval> interval(const ErrorClass&, bool every_format = false) const;
  /// The interval from all runs but one, or but one publication, to see whether it holds that.
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
  std::optional<PredictionInterval> interval_if(const ErrorClass&, const Accepts&, bool every_format = false) const;

  std::vector<Distance> distances_;
};

/// The recorded interval of runs whose software is not known: the distances of published runs with the facts of other
/// frameworks.
std::optional<PredictionInterval> interval_of_unknown_software(const ErrorClass&);

/// |measured / predicted - 1| of a run.
double prediction_distance(const MeasuredRun&);

/// How many published runs the intervals of their classes hold.
std::string coverage_text(std::span<const PredictionSet>);

/// The interval of the times of an experiment: the widest of its device types. Nothing where layers are not priced from
/// shapes: without `software`, or with given or measured times, or on a device type without figures for products. A
/// type that is not calibrated takes the distances of all runs of such models, priced with the shares of each other
/// type that was fitted: what a wrong share costs. Software without five runs on the type, or attention by a kernel
/// that was not measured there, takes the distances of such models priced with the facts of other frameworks. No run is
/// simulated for it: intervals are in scenarios/predictions/intervals.csv.
std::optional<PredictionInterval> prediction_interval(const Experiment&);

/// That file, from runs that predict() has predicted. With `transferred`, also the intervals of types that are not
/// calibrated and of unknown software, for which runs are simulated with the shares of other types and with the facts
/// of other frameworks.
std::string intervals_csv(std::span<const PredictionSet>, bool transferred);

/// The distance of rank ceil(0.8 (n + 1)) among n, and the median.
PredictionInterval interval_of(std::vector<double> distances, std::string class_name, bool calibrated);
/// "large dense models".
std::string kind_text(const ErrorClass&);

}  // namespace stagecraft
