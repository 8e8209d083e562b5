#include <algorithm>

#include <fmt/core.h>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/dual_pipe.hpp"

namespace stagecraft::schedules {
namespace {

// Ranks r and p - 1 - r mirror each other: for each, the direction that it is nearer the beginning of comes first.
void dualpipe_order(const RankInput& r, RankOps& ops) {
  const int p = r.ranks, m = r.micro_batches;
  require_even_ranks(p, "dualpipe");
  require_micro_batches(m % 2 == 0 && m >= 2 * p, "dualpipe", fmt::format("an even number from {} on", 2 * p), m);
  const int mirrored = 2 * r.rank >= p;
  dual_pipe(std::min(r.rank, p - 1 - r.rank), p / 2, m / 2, {mirrored, 1 - mirrored},
            {mirrored * m / 2, (1 - mirrored) * m / 2}, ops);
}

}  // namespace

extern const ScheduleDef dualpipe{
    .name = "dualpipe",
    .summary = "Two copies of the model in opposite directions, forward and backward overlapped",
    .source = "DeepSeek-AI, DeepSeek-V3, 2024; deepseek-ai/DualPipe, dualpipe.py",
    .placement = Placement::Bidirectional,
    .chunks = {2, 2},
    .rank = dualpipe_order,
};

}  // namespace stagecraft::schedules
