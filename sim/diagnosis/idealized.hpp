#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// Costs that an idealized run does not pay. Flags that are joined with |.
enum class Cost : std::uint16_t {
  Contention = 1,         ///< Messages that share links.
  Messages = 2,           ///< Bytes and latencies of messages between stages.
  GradientSums = 4,       ///< All-reduces of gradients, and gathers of updated weights.
  GroupCollectives = 8,   ///< Collectives of tensor, context and expert groups.
  Slowdowns = 16,         ///< Changes of devices during the run.
  SlowTypes = 32,         ///< Every device computes as fast as the fastest type of the plan.
  UnequalStages = 64,     ///< The ops of all stages take equally long.
  SlowLinks = 128,        ///< Collectives inside of ops have the links of prices by shape: see PricingChanges.
  UnequalLoads = 256,     ///< The micro-batches of a replica take equally long in each iteration.
  UnequalReplicas = 512,  ///< The micro-batches of all replicas of a stage take equally long in each iteration.
  Launches = 1024,        ///< What devices wait for the host, which launches kernels.
  HostMemory = 2048       ///< Copies of activations to and from host memory.
};
constexpr Cost operator|(Cost a, Cost b) {
  return static_cast<Cost>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr Cost kSlowDevices = Cost::Slowdowns | Cost::SlowTypes;
/// Whether the set has one of these.
constexpr bool has(Cost set, Cost any) { return (static_cast<unsigned>(set) & static_cast<unsigned>(any)) != 0; }
constexpr Cost without_flag(Cost set, Cost one) {
  return static_cast<Cost>(static_cast<unsigned>(set) & ~static_cast<unsigned>(one));
}

/// Whether it belongs to `plan.offload`, which is no communication between devices.
constexpr bool is_offload(const CollectiveCall& c) {
  return c.purpose == Purpose::Stash || c.purpose == Purpose::LateForward;
}

/// Periods of one program without some of its costs. What a run would save without a cause is the difference of two of
/// them. The order of work stays as it is, so a better one may save more.
class IdealizedRuns {
 public:
  /// Keeps references to both. While it simulates, it removes costs from the program itself, because a copy of a large
  /// one takes longer than its simulation; then it gives them back.
  IdealizedRuns(CompiledExperiment&, const Outcome&, const std::string& backend);

  /// The period of the run itself.
  Seconds period() const { return outcome_.report.period; }
  /// The period without these costs. Simulated once for each set of costs.
  Seconds without(Cost costs);
  /// Work of the busiest device in an iteration without these costs.
  Seconds busiest(Cost costs);

  /// Whether all stages have the same number of micro-batches and replicas, so that their times can be compared.
  bool stages_are_comparable() const { return comparable_; }
  /// How much longer a device computes than the fastest type of the plan would: at least 1. Collectives do not count:
  /// they take long where links are slow.
  double slowness(DeviceId d) const { return slowness_[d]; }
  /// Computation of a device in an iteration, without the collectives inside of its ops.
  Seconds computation(DeviceId d) const { return computation_[d]; }

 private:
  struct Result {
    Seconds period, busiest;
  };
  static Result result_of(const Report& r) { return {r.period, (1 - r.steady_bubble) * r.period}; }
  const Result& result(Cost costs);
  Result simulate(Cost costs);
  /// Removes what is not on the network.
  void remove_costs(Cost costs);
  void equalize_loads(bool replicas);
  void measure_computation();
  /// Which of the costs of the plan the op has; nothing where the stage is not the device's.
  std::optional<std::size_t> cost_of(const Instruction& op) const;
  /// Gives ops the times that they have on the fastest types of devices, or with equal links, or both.
  void price_again(bool fast_types, bool equal_links);

  CompiledExperiment& compiled_;
  const Outcome& outcome_;
  bool shares_links_;  ///< Whether the backend of the run lets messages share links.
  bool comparable_;
  bool has_slow_links_;  ///< Whether prices of ops depend on them.
  bool has_types_;       ///< Whether devices are of several types.
  bool has_sums_;        ///< Whether gradients are summed, in ops or apart from them.
  bool has_launches_;    ///< Whether ops wait for the host.
  /// Its stages, and which of the costs of the plan it has for each: few, and looked up for every op.
  IdVector<DeviceId, std::vector<std::pair<StageId, std::size_t>>> costs_of_device_;
  IdVector<DeviceId, double> slowness_;
  IdVector<DeviceId, Seconds> computation_;
  std::map<Cost, Result> results_;
};

}  // namespace stagecraft
