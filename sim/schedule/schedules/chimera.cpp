// The schedule `chimera`: two directions of the pipeline share each rank.

#include <algorithm>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

struct ChimeraSlot {
  int time;
  OpKind kind;
  int chunk, micro;
};

int chimera_turn(int ranks, int micro_batches) { return std::max(1, std::min(ranks, micro_batches) / 2); }

// In steps of one op, a stage s of either direction runs micro-batch j of group g forward at 2pg + 2j + s and backward
// at 2pg + 2j + 2p - 1 - s. With p even and p/2 micro-batches in a group, the two directions take the even and the odd
// steps of a rank in turn, and the groups follow each other without a gap, however many there are.
void chimera_order(const RankInput& r, RankOps& ops) {
  const int p = r.ranks;
  require_even_ranks(p, "chimera");
  std::vector<ChimeraSlot> slots;
  for (const int chunk : {0, 1}) {
    const StageId stage = r.in.layout.stages[r.rank][chunk];
    const int s = chunk == 0 ? r.rank : p - 1 - r.rank, group = p / 2;
    const std::vector<int>& micros = r.in.plan.stage(stage).micros;
    for (int i = 0; i < static_cast<int>(micros.size()); ++i) {
      const int entry = 2 * p * (i / group) + 2 * (i % group), micro = micros[i];
      slots.push_back({entry + s, OpKind::Forward, chunk, micro});
      slots.push_back({entry + 2 * p - 1 - s, OpKind::Backward, chunk, micro});
    }
  }
  std::sort(slots.begin(), slots.end(), [](const ChimeraSlot& a, const ChimeraSlot& b) { return a.time < b.time; });
  for (const ChimeraSlot& slot : slots) ops.add(slot.kind, slot.chunk, slot.micro);
}

}  // namespace

extern const ScheduleDef chimera{
    .name = "chimera",
    .summary = "Two copies of the model in opposite directions: bubble (p - 2) / (2m + p - 2) where F = B",
    .source = "Li and Hoefler, Chimera, SC 2021",
    .placement = Placement::Bidirectional,
    .chunks = {2, 2},
    .turn = chimera_turn,
    .rank = chimera_order,
};

}  // namespace stagecraft::schedules
