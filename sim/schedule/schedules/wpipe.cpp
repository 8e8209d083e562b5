#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/schedule/chunk_order.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec wpipe_fields{.title = "Two groups of stages, updated in turn, without a flush.",
                                   .fields = {drain_every_field()}};

// The interleaved order in groups of all micro-batches of an iteration. Rank r runs 2(p - 1 - r) + m forwards ahead.
// From m = 2(p - 1) on, each forward of the second group comes after the update of the previous iteration, so it uses
// the newest weights; each forward of the first group comes between that update and the one before it, so its weights
// are one update old.
void wpipe_order(const RankInput& r, RankOps& ops) {
  const int m = r.in.plan.micro_batches(StageId{0}), min_micro_batches = 2 * (r.ranks - 1);
  require_micro_batches(m >= min_micro_batches, "wpipe",
                        fmt::format("at least {} on {}, so that two weight versions are enough", min_micro_batches,
                                    pluralize(r.ranks, "rank")),
                        m);
  whole_backward(ChunkOrder(r.chunks, r.micro_batches, m), 2 * (r.ranks - 1 - r.rank) + m, false, ops);
}

}  // namespace

extern const ScheduleDef wpipe{
    .name = "wpipe",
    .summary =
        "Two groups of stages that are updated in turn, without a flush: half the stale weights and half the copies of "
        "2bw",
    .source = "Yang et al., Group-based Interleaved Pipeline Parallelism, ICLR 2022",
    .weights = "stash",
    .flushes = false,
    .placement = Placement::Loop,
    .chunks = {2, 2},
    .fields = &wpipe_fields,
    .rank = wpipe_order,
};

}  // namespace stagecraft::schedules
