#include "sim/schedule/rounds.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{
    .title = "1F1B over several stages on each device.",
    .fields = {chunks_field(), group_field(),
               config::boolean("overlap_moe")
                   .fallback("false")
                   .doc("One forward more ahead, and each forward as one op with a backward that does not need it "
                        "(Megatron's overlap of expert communication).")}};

// Rank r runs 2(p - 1 - r) + (v - 1) group forwards ahead, so that the micro-batch that comes back from the last chunk
// finds it free.
void order(const RankInput& r, RankOps& ops) {
  const Rounds rounds = rounds_of(r, "interleaved");
  const bool overlap = option_is(r.in, "overlap_moe", "true");
  whole_backward(rounds, 2 * (r.ranks - 1 - r.rank) + (r.chunks - 1) * rounds.group() + overlap, overlap, ops);
}

}  // namespace

extern const ScheduleDef interleaved{
    .name = "interleaved",
    .summary = "1F1B over several stages on each device: the bubble shrinks by as much, messages grow by as much",
    .source = "Narayanan et al., Efficient Large-Scale Language Model Training (Megatron-LM), SC 2021",
    .placement = Placement::Loop,
    .chunks = {2, kManyChunks},
    .fields = &fields,
    .rank = order,
};

}  // namespace stagecraft::schedules
