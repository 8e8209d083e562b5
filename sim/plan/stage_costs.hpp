#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "sim/cost/stage_cost.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The cost of every stage on each of its devices. Where micro-batches differ, there is a cost for each class of loads
/// too, and the one without a class has the mean times of the micro-batches of the replica.
class StageCosts {
 public:
  StageCosts() = default;
  StageCosts(std::initializer_list<std::vector<StageCost>> stages) {
    for (const std::vector<StageCost>& replicas : stages) add(replicas);
  }

  /// Makes room for the costs of this number of devices, summed over the stages.
  void reserve(std::size_t devices) { costs_.reserve(devices); }

  /// Adds the next stage: its costs on its devices, in their order.
  void add(const std::vector<StageCost>& replicas) {
    costs_.insert(costs_.end(), replicas.begin(), replicas.end());
    first_.push_back(costs_.size());
  }

  /// Adds the costs of the next class of loads, for the same stages and devices.
  void add_class(const StageCosts& of_class) {
    costs_.insert(costs_.end(), of_class.costs_.begin(), of_class.costs_.end());
  }

  int stages() const { return static_cast<int>(first_.size()) - 1; }
  const StageCost& at(StageId stage, int replica) const { return costs_[first_[stage.value] + replica]; }
  StageCost& at(StageId stage, int replica) { return costs_[first_[stage.value] + replica]; }
  const StageCost& at(StageId stage, int replica, int load_class) const {
    return costs_[first_.back() * static_cast<std::size_t>(load_class + 1) + first_[stage.value] + replica];
  }
  std::span<const StageCost> replicas(StageId stage) const {
    return {costs_.data() + first_[stage.value], size_of(stage)};
  }
  std::span<StageCost> replicas(StageId stage) { return {costs_.data() + first_[stage.value], size_of(stage)}; }
  std::span<const StageCost> values() const { return costs_; }
  std::span<StageCost> values() { return costs_; }

 private:
  std::size_t size_of(StageId stage) const { return first_[stage.value + 1] - first_[stage.value]; }

  std::vector<StageCost> costs_;
  std::vector<std::size_t> first_{0};  ///< [stage]: its first cost, then their number. Each class has as many.
};

/// What is priced other than it is. The plan stays where it stands.
struct PricingChanges {
  std::function<DeviceTypeId(DeviceId)> type_of = {};  ///< Types of the devices; empty: their own.
  bool equal_links =
      false;  ///< Collectives of all stages have the links that prices by shape know: see slow_links.hpp.
};

/// Prices a plan where it stands: the only function that does.
StageCosts stage_costs(const Plan&, const CostTable&, const PricingChanges& = {});

/// One cost for every stage, for plans made without a model.
StageCosts uniform_costs(const Plan&, const StageCost&);

}  // namespace stagecraft
