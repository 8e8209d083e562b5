#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/published/simulated_predictions.hpp"

namespace stagecraft {

using MeasuredRuns = std::vector<const MeasuredRun*>;

/// A number that a fit may change: a share of the peak, the time of a launch, the rate of the network cards, the shares
/// of fused attention, or what passes show of the exchanges of divided weights.
enum class FreeNumber : std::uint8_t { Share, Launch, Card, Attention, FsdpOverlap };

/// A class of time with whose part of each run the errors of a fit grow or shrink.
struct CorrelatedTerm {
  std::string name;
  FreeNumber kind = FreeNumber::Share;  ///< The number that would change it.
  double correlation = 0;
};

/// Numbers of a device type that are fitted together to measured runs, which are simulated.
struct Fit {
  struct Number {
    FreeNumber kind = FreeNumber::Share;
    std::vector<NumberFormat> formats = {};  ///< Formats whose share it is.
    double factor = 1;                       ///< Fitted over given value.
    double spread = 0;                       ///< Half the range of the fits to a part of the runs, over the value.
  };
  std::vector<Number> numbers;
  int runs = 0;
  double error_before = 0, error_after = 0;  ///< Mean absolute errors of the runs.
  double error_left_out = 0;                 ///< Mean error of runs that a fit to the others predicts (folds_of()).
  double shown = 0;  ///< FsdpOverlap: the share of exchanges that passes show, as given, of which a factor is of.
  std::vector<CorrelatedTerm> correlated = {};  ///< What the errors that are left depend on.
  double disagreement = 0;                      ///< How far the measured times of equal runs are apart, over the least.
  double largest_share = 0;                     ///< The largest fitted share; 0 where none is fitted.

  /// Equal runs differ by more than one configuration does from one release of a framework to the next: 10 % for nine
  /// of ten dense ones (Megatron-Bridge, 21 configurations).
  bool has_contradictions() const { return disagreement > 0.1; }
  /// More of the peak than products reach on any device type: the runs or their rows are not what they seem.
  bool has_impossible_share() const { return largest_share > 0.95; }
  /// Whether the fit should stay unused: it does not make runs better that it did not see, its runs contradict each
  /// other or ask for an impossible share, or its errors depend on a term that it leaves as it is, so that runs with
  /// more of that term would become worse.
  bool is_doubtful() const;

  /// The device type with the fitted shares and the fitted launch.
  Accelerator applied(Accelerator) const;
};

/// Fits the numbers with the smallest mean error. `ranges`: the largest change of a number in each step, as a factor;
/// each step begins where the one before it ends. In a step each run is simulated with some values of each number, the
/// others as they are; in between, the logarithm of its time is linear in that of each number, and the changes of
/// several numbers add up. A share stays at most 1. InputError where a run cannot be simulated.
Fit fit_numbers(const MeasuredRuns&, const Accelerator&, std::vector<Fit::Number>, std::span<const double> ranges);

/// Appends the runs whose rows differ to `different`; which of them each run is equal to.
std::vector<std::size_t> equal_rows(const MeasuredRuns&, MeasuredRuns& different);
/// How often a step of fit_numbers() simulates each different run, at most.
std::size_t simulations_of_each(std::size_t numbers, double range);

/// One share for each number format of the runs, each by itself. InputError where a format has one run, because
/// nothing would tell how good the fit is, and where the simulations take too long (SECURITY.md).
std::vector<Fit> fit_shares(const PredictionSet&, const Accelerator&);

/// The device with the time of a launch that its host takes in the framework of the runs. InputError where they differ.
Accelerator with_launch_of(const PredictionSet&, Accelerator);

/// Fits the kinds of numbers together, a share for each number format. InputError where there are fewer than two runs
/// for each number, and where a number changes no simulated time by 1 % when it changes by a quarter: then the runs say
/// nothing about it. InputError where the simulations take too long.
Fit fit_together(const PredictionSet&, const Accelerator&, const std::vector<FreeNumber>&);

/// The share of one device type in one number format, fitted to published runs.
struct PublishedFit {
  std::string device;
  NumberFormat format = NumberFormat::Bf16;  ///< Formats of 16 bits count as one.
  double share = 0;                          ///< As shipped.
  Fit fit;
};
/// One for each device type and format with two predicted runs or more, without the small models, whose passes are
/// bound by launches.
std::vector<PublishedFit> fit_published(std::span<const PredictionSet>);
std::string to_text(const std::vector<PublishedFit>&);

/// Runs that a fit does not see, and the runs that it is fitted to, as indices.
struct Fold {
  std::vector<std::size_t> left_out, others;
};
/// Each of up to 64 runs is left out alone. More runs are left out in groups, of which there are fewer the more runs
/// there are: the time of all fits is proportional to the number of runs, not to its square.
std::vector<Fold> folds_of(std::size_t runs);

}  // namespace stagecraft
