#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// Packs for the micro-batches of a plan, and what makes them.
struct PackChoice {
  std::shared_ptr<const PackedBatches> packs;  ///< Null where all samples have the length of the model.
  std::string words;              ///< "packs balanced, room 8192, order hill"; empty: they are as the scenario says.
  std::vector<std::string> sets;  ///< The settings of `data` that the scenario does not have.
  int loads = 0;                  ///< A number that packs share with the same packs in another order.
  bool replicas_differ = false;   ///< In some micro-batch replicas have different loads.
};

/// Mean over micro-batches: each load, and the part of the micro-batches that have it.
using LoadShares = std::map<Load, double>;
/// The loads of one replica, or with kAllReplicas of all, in all iterations.
inline constexpr int kAllReplicas = -1;
LoadShares load_shares(const PackedBatches&, int replica, int tokens_of_sample);
/// The replica with the most tokens.
int largest_replica(const PackedBatches&);

/// The packs that a search tries for plans with other replicas and groups than the scenario's: packs of the same
/// sequences, which `data` makes by its own fields, or by other values of those that the search may choose.
class PackChoices {
 public:
  /// `fields`: what the search chooses of `data` too: "room", "pack" or "order".
  PackChoices(const PlannedExperiment&, const std::vector<std::string>& fields);

  bool are_used() const { return configured_.experiment.run.packs != nullptr; }
  /// The choices for a plan, first what the scenario says; none where it can have no packs.
  const std::vector<PackChoice>& choices_for(const PlanSpec&);
  /// What is not tried, in phrases.
  std::set<std::string> untried() const;

 private:
  std::vector<PackChoice> listed(const Degrees&);
  std::vector<PackChoice> drawn(const Degrees&);
  void add(const PackingRule& asked, const PackingRule& configured, int loads, std::vector<PackChoice>&);
  bool chooses(const char* field) const;

  const PlannedExperiment& configured_;
  std::vector<std::string> fields_;
  std::map<std::tuple<int, int, int>, std::vector<PackChoice>> made_;  ///< [replicas, context, default padding]
  std::string refused_;  ///< Why the scenario's own rule makes no packs for some plan.
  int loads_ = 0;
};

/// InputError unless these are fields of `data` that a search can choose, and the scenario has sequences to pack.
void check_pack_fields(const Experiment&, const std::vector<std::string>& fields);

}  // namespace stagecraft
