#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/quantity.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// One training run: the loss of the real weights behind every few updates.
struct Curve {
  std::uint64_t seed = 1;
  bool diverged = false;
  std::vector<Evaluation> evaluations;
  std::vector<double> losses;  ///< Of each update, as the pipeline saw them.
};

/// One way to train, over several seeds, and what an update of it takes. Simulated and measured times are never mixed.
struct MethodRuns {
  std::string name;      ///< "sync", "pipeoptim", "stash@4".
  std::string spelt;     ///< Schedule, policy and micro-batches for each update, for people.
  Seconds update, fill;  ///< Simulated: of one more update, and once until the pipeline is full.
  Seconds measured;      ///< Of one more update, on threads; 0: not measured.
  Bytes memory;          ///< Most on any device, simulated.
  std::vector<Curve> curves;
};

/// Methods of one question; the first is the one that others are held against.
struct Convergence {
  int samples_per_update = 1;
  std::vector<MethodRuns> methods;
};

/// Updates until the loss, as a mean of three evaluations, is first at `target` or below. Nothing: never.
std::optional<int> updates_to(const Curve&, double target);

/// How a method does against the first, for one target.
struct Standing {
  int reached = 0, total = 0;
  double updates = 0, low = 0, high = 0;         ///< Median and range over seeds; infinite where not reached.
  double cost = 0, cost_low = 0, cost_high = 0;  ///< Updates over those of the first, and 90 % of bootstrap samples;
                                                 ///< not a number where the first never gets there.
  double hardware = 0;                           ///< Time of an update of the first over that of this one, simulated.
  double time = 0;                               ///< Simulated seconds to the target.
  double measured_time = 0;                      ///< Measured seconds to the target; 0: not measured.
};
Standing standing(const Convergence&, std::size_t method, double target);

/// Losses at the end, and one table a target: statistical times hardware ratio, and the cost up to which each pays.
std::string to_text(const Convergence&, const std::vector<double>& targets);
/// method,seed,update,samples,simulated_s,measured_s,training_loss,evaluation_loss
std::string convergence_csv(const Convergence&);
/// method,target,reached,seeds,updates,updates_low,updates_high,cost,cost_low,cost_high,hardware_ratio,simulated_s,...
std::string tta_csv(const Convergence&, const std::vector<double>& targets);
/// Loss against updates, against simulated and against measured seconds.
std::string convergence_svg(const Convergence&, const std::string& title);

}  // namespace stagecraft
