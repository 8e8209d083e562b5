// Which rank runs which stage: linear, loop, V, wave and bidirectional. Schedules and planners share these rules, the
// second direction of a chain, and plans without a model that follow them.

#include "sim/plan/placement.hpp"

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/enum_array.hpp"

namespace stagecraft {
namespace {

constexpr EnumArray<Placement, std::string_view, 6> kNames = {"any", "linear", "loop", "v", "wave", "bidirectional"};

}  // namespace

std::string_view to_text(Placement placement) { return kNames[placement]; }

std::optional<Placement> parse_placement(std::string_view word) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == word) return static_cast<Placement>(i);
  return {};
}

ChunkRange chunks_of(Placement placement) {
  switch (placement) {
    case Placement::V:
      return {2, 2};
    case Placement::Wave:
      return {2, kManyChunks, 2};
    case Placement::Any:
    case Placement::Loop:
      return {1, kManyChunks};
    case Placement::Linear:
    case Placement::Bidirectional:
      return {1, 1};
  }
  return {};
}

int rank_of(Placement placement, int stage, int ranks) {
  const int along = stage % ranks;
  const bool back = placement == Placement::V || placement == Placement::Wave || placement == Placement::Bidirectional;
  return back && stage / ranks % 2 == 1 ? ranks - 1 - along : along;
}

int ranks_for(const PlacementRule& placing, int stages, int devices) {
  for (int chunks = placing.chunks.min; chunks <= std::min(placing.chunks.max, stages); chunks += placing.chunks.step)
    if (stages % chunks == 0 && stages / chunks <= devices) return stages / chunks;
  return 0;
}

void add_way_back(Plan& plan, int turn) {
  const int stages = plan.stage_count(), micro_batches = plan.micro_batches(StageId{0});
  if (turn <= 0) turn = std::max(1, micro_batches / 2);
  std::vector<int> down, up;
  for (int m = 0; m < micro_batches; ++m) (m / turn % 2 == 0 ? down : up).push_back(m);
  STAGECRAFT_CHECK(!up.empty());
  for (int s = 0; s < stages; ++s) {
    Stage copy = plan.stage(StageId{s});
    copy.name = "s" + std::to_string(stages + s);
    copy.place_with(plan.stage(StageId{rank_of(Placement::Bidirectional, stages + s, stages)}));
    copy.micros = up;
    copy.twin = StageId{s};
    plan.stages.push_back(std::move(copy));
    plan.stages[StageId{s}].micros = down;
    plan.stages[StageId{s}].twin = StageId{stages + s};
  }
  for (std::size_t e = 0, edges = plan.edges.size(); e < edges; ++e) {
    const StageEdge edge = plan.edges[e];
    plan.edges.push_back(
        {StageId{stages + edge.from.value}, StageId{stages + edge.to.value}, edge.bytes, edge.array, edge.of_sample});
  }
}

Plan placed_plan(Placement placement, int ranks, int chunks, int micro_batches, int turn) {
  const bool both_ways = placement == Placement::Bidirectional;
  Plan plan = chain_plan(both_ways ? ranks : ranks * chunks, ranks, micro_batches);
  for (int s = 0; s < plan.stage_count(); ++s)
    plan.stages[StageId{s}].place_on({DeviceId{rank_of(placement, s, ranks)}});
  if (both_ways) add_way_back(plan, turn);
  plan.reductions = derive_reductions(plan);
  return plan;
}

}  // namespace stagecraft
