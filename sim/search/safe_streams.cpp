// For the column `no deadlock` of `compare --schedules`: the kinds of message streams with which a schedule cannot
// deadlock where each op receives right before it and sends right after it.

#include "sim/search/safe_streams.hpp"

#include <algorithm>
#include <utility>

#include "sim/schedule_file/chains.hpp"
#include "sim/schedule_file/checks.hpp"
#include "sim/schedule_file/comms.hpp"

namespace stagecraft {
namespace {

/// The first of the replicas alone, where every stage has as many.
Plan one_chain(Plan plan) {
  const std::size_t replicas = plan.stages.front().leaders.size();
  const auto as_many = [&](const Stage& s) { return s.leaders.size() == replicas; };
  if (std::all_of(plan.stages.begin(), plan.stages.end(), as_many))
    for (Stage& stage : plan.stages) stage = on_one_device(std::move(stage));
  return plan;
}

/// What the devices of the plan compute; updates send nothing.
Schedule computations(const Schedule& schedule, const Plan& plan) {
  Schedule result;
  result.ranks.resize(schedule.device_count());
  for (const Stage& stage : plan.stages) {
    const DeviceId d = stage.leaders.front();
    std::vector<Op>& row = result.ranks[RankId{d.value}];
    row = schedule.row(d);
    std::erase_if(row, [](const Op& op) { return op.kind == OpKind::Update; });
  }
  return result;
}

}  // namespace

std::optional<std::vector<std::string>> safe_streams(const Schedule& schedule, Plan plan, int iterations) {
  constexpr std::pair<const char*, CommStreams> kModels[] = {
      {"single", CommStreams::Single}, {"pair", CommStreams::Pair}, {"direction", CommStreams::Direction}};
  const auto in_turn = [](const Stage& s) { return s.turns() > 1; };
  if (std::any_of(plan.stages.begin(), plan.stages.end(), in_turn)) return {};
  plan = one_chain(std::move(plan));
  if (!why_no_chains(plan).empty()) return {};
  plan.mini_batch *= iterations;  // Micro-batches run on through the iterations.
  const ActionTable table = add_comms(computations(schedule, plan), plan, CommsPlacement::JustInTime);
  std::vector<std::string> safe;
  for (const auto& [name, streams] : kModels)
    if (check_comms(table, plan, streams).empty() && check_rendezvous(table, plan, {.streams = streams}).empty())
      safe.emplace_back(name);
  return safe;
}

}  // namespace stagecraft
