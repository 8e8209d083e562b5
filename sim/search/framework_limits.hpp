#pragma once

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// What the training framework of a scenario's software runs, which limits what a search offers: the rules of
/// `check --framework`, the states that it divides, and what it can run next to computation.
class FrameworkLimits {
 public:
  /// `any_schedule`: schedules were named, and are tried where the framework does not have them.
  FrameworkLimits(const Experiment& configured, bool any_schedule);

  /// Why the framework refuses a plan with its order of work; empty where it accepts it, or has no rules here. What no
  /// plan changes, such as the model, is no reason.
  std::string refusal_of(const PlannedExperiment&) const;
  /// The states that plans divide, the fewest first.
  const std::vector<StateSharding>& shardings() const { return shardings_; }
  /// Why others are not tried, as a phrase for the notes of a search; empty where all are.
  const std::string& other_shardings() const { return other_shardings_; }
  /// Features of `software.overlap` that the scenario has off and the framework can run.
  const std::vector<Overlap>& switches() const { return switches_; }

 private:
  bool has_rules_, any_schedule_;
  std::vector<StateSharding> shardings_;
  std::string other_shardings_;
  std::vector<Overlap> switches_;
};

/// The experiment with these features on in `software.overlap`, beside those that are on already.
Experiment with_overlap(const Experiment&, const std::vector<Overlap>& features);
/// The sets of features that a search tries, the most first: frameworks refuse the overlap of experts and of the tensor
/// group in some plans.
std::vector<std::vector<Overlap>> overlap_sets(const std::vector<Overlap>& features);
/// The features that a plan has something to overlap with, as the setting "software.overlap={tensor: true}" that keeps
/// what else the scenario says of overlap; empty where it has none.
std::string overlap_setting(const Experiment& configured, const std::vector<Overlap>& features, const Plan&);

}  // namespace stagecraft
