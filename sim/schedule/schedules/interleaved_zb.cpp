#include "sim/schedule/chunk_order.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec interleaved_zb_fields{.title = "Interleaved 1F1B with the weight gradients apart.",
                                            .fields = {chunks_field(), group_field()}};

struct InterleavedZbOptions {
  int group = 0;
  friend bool operator==(const InterleavedZbOptions&, const InterleavedZbOptions&) = default;
};

void read_interleaved_zb(const config::Value& map, ScheduleOptions& options) {
  options.keep(InterleavedZbOptions{option_or(map, "group", 0)});
}

void interleaved_zb_order(const RankInput& r, RankOps& ops) {
  split_backward(r, chunk_order_of(r, "interleaved-zb", r.in.options.as<InterleavedZbOptions>().group), ops);
}

}  // namespace

extern const ScheduleDef interleaved_zb{
    .name = "interleaved-zb",
    .summary = "Interleaved 1F1B whose weight gradients fill the bubble: (p - 1)(F + I - W) of a chunk",
    .source = "torch.distributed.pipelining, ScheduleInterleavedZeroBubble; Qi et al., Zero Bubble, ICLR 2024",
    .placement = Placement::Loop,
    .chunks = {2, kManyChunks},
    .fields = &interleaved_zb_fields,
    .read = read_interleaved_zb,
    .rank = interleaved_zb_order,
};

}  // namespace stagecraft::schedules
