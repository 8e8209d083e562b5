#include "sim/schedule/chunk_order.hpp"

namespace stagecraft::schedules {
namespace {

void zb_h1_order(const RankInput& r, RankOps& ops) { split_backward(r, {1, r.micro_batches, r.micro_batches}, ops); }

}  // namespace

extern const ScheduleDef zb_h1{
    .name = "zb-h1",
    .summary = "1F1B whose weight gradients fill the bubble: (p - 1)(F + I - W), in the memory of 1F1B's first stage",
    .source =
        "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024; order of PyTorch's ScheduleInterleavedZeroBubble",
    .placement = Placement::Linear,
    .rank = zb_h1_order,
};

}  // namespace stagecraft::schedules
