// The pipeline ranks of a plan, and how many stages a schedule puts on each when it takes the place of another;
// `compare` and sweeps ask.

#include "sim/experiment/stages_of_schedule.hpp"

#include <set>

namespace stagecraft {

int pipeline_ranks(const Plan& plan) {
  std::set<DeviceId> first;
  for (const Stage& stage : plan.stages) first.insert(stage.leaders.front());
  return static_cast<int>(first.size());
}

int stages_on_rank(const PlacementRule& placing, int per_rank) {
  const ChunkRange& range = placing.chunks;
  if (range.max == 1 || placing.placement == Placement::Bidirectional) return 1;
  if (per_rank > 1 && range.has(per_rank)) return per_rank;
  return range.min > 1 ? range.min : range.min + range.step;
}

}  // namespace stagecraft
