#pragma once

#include <optional>
#include <string_view>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Which rank runs which stage of a chain, p ranks.
enum class Placement {
  Any,           ///< No rule: each stage has a separate rank, in the order of the plan.
  Linear,        ///< Stage s on rank s.
  Loop,          ///< Round-robin: stage s on rank s % p.
  V,             ///< Down the ranks and back up once: rank r has stages r and 2p-1-r.
  Wave,          ///< Down the ranks and back up any number of times.
  Bidirectional  ///< A second copy of the p stages runs the other way: stage p+s on rank p-1-s.
};

std::string_view to_text(Placement);
std::optional<Placement> parse_placement(std::string_view);

/// Stages on each rank that a schedule can have: `min`, `min + step`, ... up to `max`.
struct ChunkRange {
  int min = 1, max = 1, step = 1;
  bool has(int chunks) const { return chunks >= min && chunks <= max && (chunks - min) % step == 0; }
  friend bool operator==(const ChunkRange&, const ChunkRange&) = default;
};
constexpr int kManyChunks = 1 << 20;

/// The placement of stages that a schedule needs.
struct PlacementRule {
  Placement placement = Placement::Any;
  ChunkRange chunks;
  int (*turn)(int ranks, int micro_batches) = nullptr;  ///< Bidirectional: consecutive micro-batches in one direction.
  friend bool operator==(const PlacementRule&, const PlacementRule&) = default;
};

/// Numbers of stages on each rank that a placement allows.
ChunkRange chunks_of(Placement);

int rank_of(Placement, int stage, int ranks);

/// The largest number of ranks, at most `devices`, that gives each rank an allowed number of stages; 0 if none does.
int ranks_for(const PlacementRule&, int stages, int devices);

/// Adds the second copy of a chain of p stages, which runs the other way: stage p+s is the twin of stage s, on the
/// devices of stage p-1-s. The micro-batches, at least two, go down and up in turns of `turn`, which is half of them
/// when it is 0.
void add_way_back(Plan&, int turn);

/// A plan without a model. `turn`: see add_way_back().
Plan placed_plan(Placement, int ranks, int chunks, int micro_batches, int turn = 0);

}  // namespace stagecraft
