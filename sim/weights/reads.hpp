#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

/// The weights that one op uses.
struct WeightRead {
  std::int32_t version = 0;   ///< Updates in these weights, or in the weights that a prediction starts from.
  std::int32_t horizon = -1;  ///< Positive: first predict (or reconstruct) over this number of updates.
  WeightsFrom from = WeightsFrom::Version;

  friend bool operator==(const WeightRead&, const WeightRead&) = default;
};

/// What a rule asks of one stage on one device.
struct StageNeeds {
  int delay = 0;    ///< Largest number of updates between a forward and its backward in the list of ops.
  int buffers = 1;  ///< Weight-sized buffers at the worst moment, scratch and averages included; the momentum that
                    ///< WeightsRule::needs_momentum() asks for is a state of the optimizer and not among them.
};

/// Applies a rule to the order of work: versions depend on the lists alone, never on time. A stage that is never
/// updated has one version, whatever the rule.
class WeightReads {
 public:
  /// The schedule has to stay where it is. Throws Infeasible "weights" when an op would read a version that is not made
  /// before it. O(ops); takes no memory per op where every op reads the newest version.
  WeightReads(const Schedule&, const Plan&, const WeightsRule&);

  /// What op number `index` in the list of `device` reads; for an update, the version that it makes.
  WeightRead at(DeviceId device, std::size_t index) const;
  StageNeeds needs(StageId stage, int replica) const { return needs_[stage][replica]; }

 private:
  void find_updates(DeviceId device, IdVector<StageId, class StageDelays>&);

  const Schedule* schedule_;
  /// Where the updates of each stage on a device stand in the list of the device.
  IdVector<DeviceId, std::map<StageId, std::vector<std::uint32_t>>> updates_;
  IdVector<DeviceId, std::vector<WeightRead>> reads_;  ///< [device][op]; empty where all read the newest.
  IdVector<StageId, std::vector<StageNeeds>> needs_;   ///< [stage][replica]
};

/// What a rule asks of each stage of a plan whose stages do single tasks (StageTask). A device holds the versions of a
/// layer from its newest back to the oldest that an input gradient there will read. They stand with the input gradient,
/// else with the forward, else with the weight gradient, and the other tasks of the layer on the device have none of
/// their own. InputError for rules that count the stages of a pipeline. O(ops).
IdVector<StageId, StageNeeds> task_needs(const Schedule&, const Plan&, const WeightsRule&);

}  // namespace stagecraft
