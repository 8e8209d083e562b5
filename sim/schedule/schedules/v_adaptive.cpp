// The schedule `v-adaptive`: the shortest V-shaped order within a memory limit, which v_shape/adaptive_search finds.

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/schedule/v_shape/adaptive_search.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec v_adaptive_fields{.title = "The shortest V-shaped order within a memory limit.",
                                        .fields = {memory_field("1")}};

struct VAdaptiveMemoryOption {
  double memory = 1;
  friend bool operator==(const VAdaptiveMemoryOption&, const VAdaptiveMemoryOption&) = default;
};

void read_v_adaptive(const config::Value& map, ScheduleOptions& options) {
  options.keep(VAdaptiveMemoryOption{option_or(map, "memory", 1.0)});
}

Schedule v_adaptive_whole(const ScheduleInput& in) {
  const int m = in.plan.micro_batches(StageId{0}), ranks = in.layout.ranks();
  const double memory = in.options.as<VAdaptiveMemoryOption>().memory;
  RankCosts costs = rank_costs(in);
  const VWork work{.costs = std::move(costs.ranks), .hop = costs.hop, .micro_batches = m};
  const VRows best = shortest_rows(work, static_cast<int>(std::min(memory, 1.0) * 2 * ranks + 1e-9));
  if (best.empty())
    throw Infeasible("memory",
                     fmt::format("the schedule 'v-adaptive' finds no order in {:g} times {} activations on each rank",
                                 memory, ranks),
                     "a larger run.schedule.memory; 1 is always enough");
  return by_rank(in, m, [&](const RankInput& r, RankOps& ops) {
    constexpr EnumArray<VPass, OpKind, kVPasses> kinds{OpKind::Forward,        OpKind::Forward,
                                                       OpKind::InputGradient,  OpKind::InputGradient,
                                                       OpKind::WeightGradient, OpKind::WeightGradient};
    EnumArray<VPass, int, kVPasses> count{};
    for (const VStep& step : best[r.rank]) ops.add(kinds[step.pass], chunk_of(step.pass), count[step.pass]++);
  });
}

}  // namespace

extern const ScheduleDef v_adaptive{
    .name = "v-adaptive",
    .summary = "Two stages on each device, in a V: the shortest order within a memory limit",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; sail-sg, v_auto_schedule.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .fields = &v_adaptive_fields,
    .read = read_v_adaptive,
    .whole = v_adaptive_whole,
};

}  // namespace stagecraft::schedules
