// Which version of the weights each op of a schedule reads on every device, and the delay and the weight buffers of
// each stage.

#include "sim/weights/reads.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/weights/stage_walk.hpp"

namespace stagecraft {

namespace {

/// Formulas that count the stages of a path do not know of replicas that take turns.
void require_stages_alone(const Plan& plan, const WeightsRule& rule) {
  if (rule.forward != ForwardWeights::Vertical && !rule.assumes_staleness()) return;
  for (const Stage& stage : plan.stages)
    if (stage.turns() > 1)
      throw InputError(
          fmt::format("these weights follow from the number of stages, but the replicas of stage '{}' take "
                      "micro-batches in turn",
                      stage.name),
          "write horizon: exact, weights: stash, or share: samples");
}

}  // namespace

WeightReads::WeightReads(const Schedule& schedule, const Plan& plan, const WeightsRule& rule)
    : schedule_(&schedule), updates_(schedule.device_count()), reads_(schedule.device_count()) {
  require_stages_alone(plan, rule);
  for (const Stage& stage : plan.stages) needs_.emplace_back(stage.leaders.size());
  const std::vector<int> to_sink = depth_to_sink(plan.graph());
  const int depth = to_sink.empty() ? 1 : *std::max_element(to_sink.begin(), to_sink.end());
  IdVector<StageId, StageDelays> delays(plan.stages.size());
  IdVector<StageId, std::optional<StageWalk>> walks(plan.stages.size());
  for (const DeviceId d : updates_.ids()) {
    find_updates(d, delays);
    for (const auto& [s, updates] : updates_[d]) {
      const int each = plan.micro_batches_run(s) / schedule.updates_of(s);
      const StagePlace place{depth - to_sink[s.value], depth, each};
      walks[s].emplace(plan, s, place, schedule.drain_every, rule, delays[s]);
    }
    if (!rule.reads_newest())
      for (const Op& op : schedule.row(d)) reads_[d].push_back(walks[op.stage]->next(op));
    for (const auto& [s, updates] : updates_[d]) {
      const int replica = replica_on(plan.stage(s), d);
      needs_[s][replica] = walks[s]->needs();
      walks[s].reset();
      delays[s] = {};
    }
  }
  if (plan.has_whole_stages()) return;
  const IdVector<StageId, StageNeeds> tasks = task_needs(schedule, plan, rule);
  for (const StageId s : needs_.ids()) std::fill(needs_[s].begin(), needs_[s].end(), tasks[s]);
}

void WeightReads::find_updates(DeviceId device, IdVector<StageId, StageDelays>& delays) {
  const auto& ops = schedule_->row(device);
  auto& updates = updates_[device];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    StageDelays& stage = delays[ops[i].stage];
    if (stage.empty()) updates.try_emplace(ops[i].stage);
    stage.add(ops[i]);
    if (ops[i].kind == OpKind::Update) updates.at(ops[i].stage).push_back(static_cast<std::uint32_t>(i));
  }
}

WeightRead WeightReads::at(DeviceId device, std::size_t index) const {
  if (!reads_[device].empty()) return reads_[device][index];
  const Op& op = schedule_->row(device)[index];
  const auto& updates = updates_[device].at(op.stage);
  const auto before = std::lower_bound(updates.begin(), updates.end(), static_cast<std::uint32_t>(index));
  return {.version = static_cast<std::int32_t>(before - updates.begin()) + (op.kind == OpKind::Update)};
}

}  // namespace stagecraft
