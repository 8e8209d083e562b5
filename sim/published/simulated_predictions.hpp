#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/published/prediction_cache.hpp"
#include "sim/published/predictions.hpp"

namespace stagecraft {

/// The stack of a run, with the facts that its row replaces.
SoftwareStack software_of(const MeasuredRun&);

/// A measured run as an experiment: its model with operations, a cluster of its device type with one card for each
/// device, and its layers divided as its row says. `device` has the figures of the type, `card_factor` times the rate
/// of the cards. Devices have enough memory for every division, because these runs fitted.
Experiment experiment_of(const MeasuredRun&, const Accelerator& device, double card_factor = 1);

/// The run on `ideal`, with these figures. Nothing, and why, where a scenario cannot say the run, or a schedule cannot
/// run it.
std::optional<SimulatedRun> simulate(const MeasuredRun&, const Accelerator& device, std::string& why_not);

/// How long a simulation takes, in steps of about a microsecond: 1,000 for itself, one for each op, six for each
/// layer and four for each device.
double simulation_steps(const MeasuredRun&);

/// A measured run that is simulated with one set of figures after another; its experiment is built once for each
/// factor of the cards.
class RepeatedRun {
 public:
  explicit RepeatedRun(const MeasuredRun& run) : run_(run) {}
  /// As simulate(), with `card_factor` times the rate of the cards, and with this SoftwareStack::pass_overlap, if any,
  /// in place of the stack's.
  std::optional<SimulatedRun> simulate(const Accelerator&, double card_factor, std::optional<double> pass_overlap,
                                       std::string& why_not);

 private:
  const MeasuredRun& run_;
  std::optional<Experiment> experiment_;  ///< The last one.
  double card_factor_ = 1;
};

/// The device types that runs name.
using AcceleratorsByName = std::map<std::string, Accelerator, std::less<>>;
/// Loads the files of topologies/devices that the runs need.
AcceleratorsByName accelerators_of(std::span<const PredictionSet>);

/// Simulates every run that the cache does not have, on up to 16 cores, and sets `predicted`. Equal runs are simulated
/// once. Runs that cannot be simulated are removed from their sets, which count them by reason.
void predict(std::span<PredictionSet>, PredictionCache&);

}  // namespace stagecraft
