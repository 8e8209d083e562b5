#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_cost.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What a schedule may look at when it decides an order.
struct ScheduleInput {
  const Plan& plan;
  const StageCosts& costs;
  int iterations = 1;
  const config::Value* options = nullptr;  ///< The checked `run.schedule` map; null when made without a scenario.
  std::vector<int> depth = {};             ///< Of each stage: stages on the longest path to a sink, itself included.
};

/// Appends the ops of one stage.
class OpList {
 public:
  OpList(std::vector<Op>& ops, StageId stage) : ops_(&ops), stage_(stage) {}
  void forward(int micro) { ops_->push_back({OpKind::Forward, false, stage_, micro}); }
  void backward(int micro) { ops_->push_back({OpKind::Backward, false, stage_, micro}); }

 private:
  std::vector<Op>* ops_;
  StageId stage_;
};

/// `warmup` forwards, then a backward and a forward in turn, `group` at a time, then the backwards that are left.
void alternate(int micro_batches, int warmup, int group, OpList& ops);

/// One entry of the catalogue: one file in sim/schedule/schedules/.
///
/// A family gives either the order of one stage, or the whole schedule of one iteration. Iterations, updates behind
/// the last backward of each iteration, and recomputation are added by build_schedule.
struct ScheduleDef {
  std::string_view name, summary, source;
  std::string_view weights = "flush";  ///< The weights policy it goes with.
  bool flushes = true;                 ///< False: `stage` is asked once for all micro-batches between two drains.
  bool trains = true;                  ///< False: forward only, no updates.
  bool equal_sizes = true;             ///< Needs the same micro-batch size on every stage.
  const config::MapSpec* fields = nullptr;
  void (*stage)(const ScheduleInput&, StageId, int micro_batches, OpList&) = nullptr;
  Schedule (*whole)(const ScheduleInput&) = nullptr;
};

namespace schedules {
Catalog<ScheduleDef> all();
}

/// For the options of a schedule that does not flush.
config::Field drain_every_field();
/// Iterations between two drains; 0: none before the end. `options` is the checked `run.schedule` map, or null.
int drain_every(const ScheduleDef&, const config::Value* options);

/// The schedule of every device for all iterations. Fills in `depth`.
Schedule build_schedule(const ScheduleDef&, ScheduleInput);

/// Puts the order of each stage on each of its devices. InputError when stages share a device, unless `share`.
Schedule by_stage(const Plan&, std::string_view schedule, bool share,
                  const std::function<void(StageId, OpList&)>& order);

/// Repeats one iteration, with an update of each stage behind its last backward (or weight gradient), and an R
/// before each B of stages that recompute, unless the order has it. Ops that run as one stay together.
Schedule complete(const Schedule& iteration, const Plan& plan, int iterations);

}  // namespace stagecraft
