#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/output/choice_table.hpp"
#include "sim/search/framework_limits.hpp"
#include "sim/search/plan_variants.hpp"
#include "sim/search/policies.hpp"
#include "sim/search/work_bound.hpp"

// Makes the plan of a variant, and simulates it with an order of work: the tasks of a search.

namespace stagecraft {

/// A plan, before an order of work is chosen for it.
struct Candidate {
  PlanVariant variant;
  Choice properties;  ///< What the plan is made of, with the bounds as period and memory.
  PlanBound bound;
  AmountBound amount;   ///< The bound on the objective, from the devices and their work.
  bool flushes = true;  ///< The policy that it was made for flushes, which decides about ties.
  std::shared_ptr<const PlannedExperiment> planned;  ///< Null where it takes much memory.
  /// The runner keeps the newest large plans; for others the planner runs again.
  std::weak_ptr<const PlannedExperiment> large_plan;
};

struct Combination {
  std::shared_ptr<const Candidate> candidate;
  SchedulingPolicy policy;
};

enum class TrialResult { Ran, Unfit, Refused };

/// What a simulation of a combination showed.
struct Trial {
  TrialResult result = TrialResult::Refused;
  std::string why;  ///< The reason for a refusal.
  Choice choice;
};

/// What a plan is made of, as the properties of a choice.
void describe_choice(const PlannedExperiment&, const PlanVariant&, const NetworkParts&, Choice&);
/// The results of a simulation.
void measure_choice(const Outcome&, const CompiledExperiment&, Choice&);

/// Makes the experiments of combinations, and simulates them. Several threads may use one at a time.
class CombinationRunner {
 public:
  CombinationRunner(const Experiment& configured, const std::vector<SchedulingPolicy>&, std::string backend,
                    int iterations, double margin, const SearchObjective&, const FrameworkLimits&);

  /// The plan of a variant; nothing if the planner finds none. `max_instructions`: limit of one simulation; a larger
  /// plan sets `too_large_to_simulate`.
  std::shared_ptr<const Candidate> candidate(const PlanVariant&, double max_instructions,
                                             bool& too_large_to_simulate) const;

  /// Simulates a combination on the backend.
  Trial run(const Combination&) const;
  /// Simulates a combination that ran on `fluid` too, and ranks it by that.
  void replay(const Combination&, Trial&) const;

  /// Sets the amount of the objective, and whether the margin of memory is free, from the results of a simulation.
  void set_amount(const Combination&, Choice&) const;

  /// The settings on the command line that make the combination of the scenario, but for Choice::overlap.
  std::vector<std::string> sets_of(const Combination&) const;

  /// The least amount of the objective with a candidate's plan in such a period.
  double least_amount(const Candidate&, Seconds period) const;
  /// What is left of each device's memory without the margin; zero where their memory differs or has no limit.
  Bytes memory_with_margin() const;
  const NetworkParts& parts() const { return parts_; }
  bool can_run(const SchedulingPolicy& policy) const { return find(policy) != nullptr; }
  /// Schedules that cannot run whatever the plan, and why; those that do not go with their weights have the code
  /// "weights".
  const std::vector<std::pair<std::string, Diagnostic>>& refused() const { return refused_; }

 private:
  /// The experiment with the order of a policy, for each of `overlap_sets_`.
  struct OrderedExperiment {
    SchedulingPolicy policy;
    std::vector<Experiment> by_overlap;
  };
  const OrderedExperiment* find(const SchedulingPolicy&) const;
  Experiment experiment_of(const Combination&, std::size_t overlap_set) const;
  /// The plan of the combination with the most overlap that the framework accepts. Nothing, and why in `trial`, where
  /// it refuses all.
  std::optional<PlannedExperiment> accepted(const Combination&, Trial&) const;
  void keep_large(std::shared_ptr<const PlannedExperiment>) const;

  const Experiment& configured_;
  std::string backend_;
  int iterations_;
  double margin_;
  const SearchObjective& objective_;
  const FrameworkLimits& limits_;
  LinkCollectives links_;
  const LinkCollectives* idle_;  ///< `links_` where the backend lets no message wait for another one; else null.
  NetworkParts parts_;
  std::vector<std::vector<Overlap>> overlap_sets_;  ///< The most features first.
  std::vector<OrderedExperiment> ordered_;
  std::vector<std::pair<std::string, Diagnostic>> refused_;
  mutable std::mutex mutex_;                                                  ///< Guards the next two.
  mutable std::deque<std::shared_ptr<const PlannedExperiment>> large_plans_;  ///< The newest ones.
  mutable std::size_t costs_ = 0;                                             ///< Their costs of stages on devices.
};

}  // namespace stagecraft
