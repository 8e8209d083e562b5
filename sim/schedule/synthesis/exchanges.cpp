#include "sim/schedule/synthesis/exchanges.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "sim/cluster/phases.hpp"
#include "sim/plan/gradient_groups.hpp"

namespace stagecraft::synthesis {
namespace {

/// As `ideal` plays it.
double ring_time(const LinkTable& links, const std::vector<DeviceId>& devices, Bytes gradient) {
  const auto bytes = static_cast<std::uint64_t>(std::round(gradient.value));
  return time_of(phases_of(CollectiveKind::AllReduce, CollectiveAlgorithm::Ring, {devices}, bytes), links).value;
}

}  // namespace

Exchanges exchanges_of(const ScheduleInput& in) {
  const Plan& plan = in.plan;
  Exchanges found;
  found.tied.assign(plan.stages.size(), false);
  if (plan.ties.empty()) return found;
  const GradientGroups groups(plan);
  std::optional<LinkTable> links;
  if (in.cluster) links.emplace(*in.cluster);
  std::map<std::pair<int, int>, Exchange> by_round;  // Rounds of later stages are updated first.
  for (const TieRing& ring : groups.rings()) {
    const Tie& tie = plan.ties[ring.tie];
    const double time = links ? ring_time(*links, ring.devices, tie.gradient) : 0;
    const auto [at, is_new] = by_round.try_emplace({-groups.round(tie.stages.front()), ring.tie});
    Exchange& exchange = at->second;
    exchange.least = is_new ? time : std::min(exchange.least, time);
    exchange.time = std::max(exchange.time, time);
    exchange.stages.assign(tie.stages.begin(), tie.stages.end());
  }
  for (std::size_t t = 0; t < plan.ties.size(); ++t) {  // On the same devices they meet in no time.
    const auto& stages = plan.ties[t].stages;
    if (!groups.tied(stages.front())) continue;
    Exchange& exchange = by_round[{-groups.round(stages.front()), static_cast<int>(t)}];
    exchange.stages.assign(stages.begin(), stages.end());
  }
  for (auto& [key, exchange] : by_round) found.all.push_back(std::move(exchange));
  for (int s = 0; s < plan.stage_count(); ++s) {
    if (!groups.tied(StageId{s})) continue;
    found.tied[s] = true;
    found.updates.push_back(s);
  }
  std::sort(found.updates.begin(), found.updates.end(), [&](int a, int b) {
    const auto place = [&](int s) { return std::tuple(-groups.round(StageId{s}), -groups.of(StageId{s}), s); };
    return place(a) < place(b);
  });
  return found;
}

}  // namespace stagecraft::synthesis
