#pragma once

#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/output/choice_table.hpp"

// What a search minimizes for a row: time, cost or energy, and its lower bounds.

namespace stagecraft {

/// The least amount of an iteration that takes a time: `fixed` and `per_second` times the seconds.
struct AmountBound {
  double fixed = 0, per_second = 1;

  double at(Seconds iteration) const { return fixed + per_second * iteration.value; }
};

/// What a search minimizes, and how that follows from times:
///
///   cost   = price of all devices of the plan x period / goodput
///   energy = sum over devices of (busy - idle) x work + idle x length of the run / iterations
///
/// A plan on fewer devices can have less of both, although it takes longer.
class SearchObjective {
 public:
  /// InputError if the scenario lacks the prices or the powers.
  SearchObjective(Objective, const PlannedExperiment& configured, int iterations);

  bool is_time() const { return unit_.is_time(); }
  const ObjectiveUnit& unit() const { return unit_; }

  /// The amount of a plan that occupies these devices, apart from their work.
  AmountBound of_devices(const std::vector<DeviceId>&) const;
  /// What a second of work on such a device adds to of_devices(); zero unless energy is the objective.
  double work_price(DeviceTypeId) const;
  bool has_work_prices() const { return unit_.objective == Objective::Energy; }
  /// The amount of a plan by its work alone, whatever devices it occupies: a second of work on such a device.
  double least_price(DeviceTypeId) const;

  /// The least amount with a lower bound on the period and the work of the busiest device: energy counts the whole run,
  /// in which the last iteration is no longer than its work.
  double amount(const AmountBound&, Seconds period, Seconds work) const;
  /// What a simulated choice takes of the scenario's budget; empty without one.
  Economics economics_of(const Choice&) const;
  /// The amount of a simulated choice.
  double amount(const AmountBound&, const Choice&) const;

 private:
  double dollars_per_second(const std::vector<DeviceId>&) const;

  const Cluster& cluster_;
  const TrainingBudget& budget_;
  int iterations_;
  ObjectiveUnit unit_;
};

}  // namespace stagecraft
