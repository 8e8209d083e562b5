#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cost/cost_table.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/settings.hpp"
#include "sim/model/model_graph.hpp"
#include "sim/planners/shared/plan_spec.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/training.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {

/// An order of work, and its options.
struct ScheduleSpec {
  const ScheduleDef* def = nullptr;
  std::shared_ptr<const config::Value> options;  ///< The checked `run.schedule` map.

  std::string name() const { return std::string(def->name); }
  /// Every iteration begins with the weights of the one before and updates them.
  bool flushes() const { return def->flushes && def->trains; }
  /// False: it runs forwards alone. The tasks of a plan are gradients too.
  bool has_gradients() const { return def->trains || def->tasks; }
};

/// Which weights each op uses.
struct WeightsSpec {
  const WeightsDef* policy = nullptr;
  WeightsRule rule;
  /// The policy was left to the schedule, so that another schedule brings its own.
  bool automatic = false;
  std::shared_ptr<const config::Value> options;  ///< The checked `weights` map.

  std::string name() const { return std::string(policy->name); }
};

/// A question as typed values: this model, on this cluster, with this plan and this order of work. A scenario is read
/// into it once. Variants are copies with other members; they share the model, the cluster and the cost table.
struct Experiment {
  std::string title;
  std::shared_ptr<const ModelGraph> model;  ///< With the bytes that the optimizer keeps.
  std::shared_ptr<const Cluster> cluster;
  Profiles profiles;
  std::shared_ptr<const CostRules> rules;  ///< Never null; `software: none` has rules that price nothing.
  std::shared_ptr<const CostTable> costs;
  PlanSpec plan;
  ScheduleSpec schedule;
  WeightsSpec weights;
  RunSpec run;
  Training training;  ///< Without `training:` in the scenario, a task that fits every model.
  bool has_training = false;
  TrainingBudget budget;
  std::string scenario_hash;  ///< SHA-256 of the resolved scenario; empty for variants, which were never written.
  std::shared_ptr<const config::Value> source;  ///< The resolved scenario, for places in messages.

  const SoftwareStack& software() const { return rules->software; }
};

/// Builds what a scenario says. Shares the model, the cluster and the cost table with `previous` where both scenarios
/// describe them alike. Throws InputError with the place of what cannot be built.
Experiment read_experiment(const Scenario&, const Experiment* previous = nullptr);
/// Whether ops that run as one hide each other's collectives of tensor groups, as its schedule says. Nothing hides
/// anything where a device does one thing at a time.
void set_braids(Experiment&, bool);
Experiment load_experiment(const std::string& file, const std::vector<std::string>& sets);

/// A copy to change. It has no hash, because it was never written as a scenario.
Experiment variant_of(const Experiment&);

/// A schedule with these options and every other at its default.
ScheduleSpec schedule_spec(const ScheduleDef&, std::vector<config::Member> options = {});

/// The options that were written for a schedule, but for where its stages lie.
std::vector<config::Member> options_without_placement(const ScheduleSpec&);

/// A weights policy with its options at their defaults, but for `fidelity` if it is given. "auto" leaves the policy to
/// the schedule that it is joined with. `where`: the place of `fidelity`, for messages.
WeightsSpec weights_spec(const std::string& policy, const std::string& fidelity = {}, const Where& where = {});

/// The variant with another order of work and other weights. InputError with the code "weights" if they do not go
/// together, and with "iterations" if the order needs more iterations to show its period.
Experiment with_order(const Experiment&, const ScheduleSpec&, const WeightsSpec&);

/// The variant whose layers, updates and messages take the times of a profile. `experiment` has none.
Experiment with_profile(const Experiment&, Profile);

}  // namespace stagecraft
