#include "sim/schedule/rounds.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{.title = "Interleaved 1F1B with the weight gradients apart.",
                             .fields = {chunks_field(), group_field()}};

void order(const RankInput& r, RankOps& ops) { split_backward(r, rounds_of(r, "interleaved-zb"), ops); }

}  // namespace

extern const ScheduleDef interleaved_zb{
    .name = "interleaved-zb",
    .summary = "Interleaved 1F1B whose weight gradients fill the bubble: (p - 1)(F + I - W) of a chunk",
    .source = "torch.distributed.pipelining, ScheduleInterleavedZeroBubble; Qi et al., Zero Bubble, ICLR 2024",
    .placement = Placement::Loop,
    .chunks = {2, kManyChunks},
    .fields = &fields,
    .rank = order,
};

}  // namespace stagecraft::schedules
