// Reads a plan as ranks with an equal number of stages each, or says why a schedule cannot run on it; makes empty
// schedules; and reduces plans and orders to one device for each rank, as CSV files have them.

#include "sim/schedule/layout.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

std::string devices_text(const Stage& stage) {
  std::string text = stage.leaders.size() == 1 ? "device" : "devices";
  for (const DeviceId d : stage.leaders) text += fmt::format(" {}", d.value);
  return text;
}

std::string chunks_text(const ChunkRange& range) {
  if (range.min == range.max) return pluralize(range.min, "stage");
  return range.step > 1 ? fmt::format("{}, or twice, three times ... as many stages", range.min)
                        : fmt::format("{} or more stages", range.min);
}

int count_ranks(const Plan& plan, const PlacementRule& placing, std::string_view schedule) {
  std::set<DeviceId> first;
  for (const Stage& stage : plan.stages) first.insert(stage.leaders.front());
  const int ranks = static_cast<int>(first.size());
  if (plan.stage_count() % ranks != 0 || !placing.chunks.has(plan.stage_count() / ranks))
    throw InputError(
        fmt::format("the schedule '{}' has {} on each device, but the plan has {} on {}", schedule,
                    chunks_text(placing.chunks), pluralize(plan.stage_count(), "stage"), pluralize(ranks, "device")),
        fmt::format("write plan.placement: auto, or {}, with stages for all devices", to_text(placing.placement)));
  return ranks;
}

void require_chain(const Plan& plan, const PlacementRule& placing, std::string_view schedule) {
  if (placing.placement == Placement::Bidirectional && !plan.stages.front().twin.valid())
    throw InputError(
        fmt::format("the schedule '{}' runs two copies of the model in opposite directions, but the plan has one copy "
                    "of each stage",
                    schedule),
        "write plan: {planner: balanced, placement: auto}, which makes both; dualpipev does with one copy");
  for (const StageEdge& edge : plan.edges)
    if (edge.to < edge.from)
      throw InputError(fmt::format("the schedule '{}' takes the stages in their order, but stage {} feeds stage {}",
                                   schedule, edge.from.value, edge.to.value),
                       "number the stages so that data goes to later ones");
}

}  // namespace

Schedule empty_schedule(const Plan& plan) {
  Schedule schedule;
  schedule.rank_of = ranks_of(plan);
  int ranks = 0;
  for (const RankId rank : schedule.rank_of) ranks = std::max(ranks, rank.value + 1);
  schedule.ranks.resize(ranks);
  if (ranks == std::ssize(schedule.rank_of)) schedule.rank_of.clear();
  return schedule;
}

RankedPlan on_ranks(const Plan& plan) {
  RankedPlan result{plan, {}, {}};
  const IdVector<DeviceId, RankId> rank_of = ranks_of(plan);
  IdVector<RankId, int> number(rank_of.size(), -1);
  for (const StageId s : plan.stages.ids()) {
    std::vector<DeviceId> devices;
    for (const DeviceId device : plan.stage(s).leaders) {
      int& rank = number[rank_of[device]];
      if (rank < 0) {
        rank = static_cast<int>(result.devices.size());
        result.devices.push_back(device);
        result.stages.emplace_back();
      }
      std::vector<StageId>& stages = result.stages[rank];
      if (!stages.empty() && stages.back() == s) continue;  // Another device of the rank.
      stages.push_back(s);
      devices.push_back(DeviceId{rank});
    }
    Stage& stage = result.plan.stages[s];
    stage.shape.degrees = {};  // An order is for one device of each group.
    stage.place_on(devices);
  }
  result.plan.reductions = derive_reductions(result.plan);  // The order has no updates, so ties do not matter.
  return result;
}

Schedule first_iteration(const Schedule& schedule, const RankedPlan& ranked) {
  Schedule one;
  one.vocabulary = schedule.vocabulary;
  for (const DeviceId device : ranked.devices) {
    std::vector<Op> ops = schedule.row(device);
    std::erase_if(ops, [&](const Op& op) {
      return op.kind == OpKind::Update || op.micro >= ranked.plan.micro_batches(op.stage);
    });
    one.ranks.push_back(std::move(ops));
  }
  return one;
}

Layout layout_of(const Plan& plan, const PlacementRule& placing, std::string_view schedule) {
  require_chain(plan, placing, schedule);
  const int ranks = count_ranks(plan, placing, schedule);
  Layout layout;
  layout.stages.resize(ranks);
  for (int r = 0; r < ranks; ++r) layout.devices.push_back(plan.stage(StageId{r}).leaders);
  for (int s = 0; s < plan.stage_count(); ++s) {
    const int rank = rank_of(placing.placement, s, ranks);
    const Stage& stage = plan.stage(StageId{s});
    if (stage.leaders != layout.devices[rank])
      throw InputError(
          fmt::format("the schedule '{}' goes with the placement '{}', where stage {} runs with stage {}, but it is on "
                      "{} instead of {}",
                      schedule, to_text(placing.placement), s, rank, devices_text(stage),
                      devices_text(plan.stage(StageId{rank}))),
          fmt::format("write plan.placement: {}, or auto", to_text(placing.placement)));
    layout.stages[rank].push_back(StageId{s});
  }
  return layout;
}

}  // namespace stagecraft
