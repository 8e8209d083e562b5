#pragma once

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

  int micro_batches(StageId s) const { return plan.micro_batches(s); }  ///< In one iteration.
};

/// Appends the ops of one stage.
class OpList {
 public:
  OpList(std::vector<Op>& ops, StageId stage, int first_micro) : ops_(&ops), stage_(stage), first_(first_micro) {}
  void forward(int micro) { add(OpKind::Forward, first_ + micro); }
  void backward(int micro) { add(OpKind::Backward, first_ + micro); }
  void update(int number) { add(OpKind::Update, number); }
  void recompute_then_backward(int micro) { add(OpKind::Recompute, first_ + micro), backward(micro); }

 private:
  void add(OpKind kind, int micro) { ops_->push_back({kind, false, stage_, micro}); }
  std::vector<Op>* ops_;
  StageId stage_;
  int first_;
};

/// One entry of the catalogue: one file in sim/schedule/schedules/.
///
/// A family gives either the order of one stage in one iteration (`stage`, repeated for every iteration with an
/// update behind it when it trains), or the whole schedule (`whole`).
struct ScheduleDef {
  std::string_view name, summary, source;
  std::string_view weights = "flush";            ///< The weights policy it needs.
  bool trains = true;                            ///< False: forward only, no updates.
  const config::MapSpec* fields = nullptr;
  void (*stage)(const ScheduleInput&, StageId, OpList&) = nullptr;
  Schedule (*whole)(const ScheduleInput&) = nullptr;
};

namespace schedules {
Catalog<ScheduleDef> all();
}

/// The schedule of every device for all iterations. Stages with `recompute` get an R before each B.
Schedule build_schedule(const ScheduleDef&, const ScheduleInput&);

}  // namespace stagecraft
