// The schedule `interleaved`: 1F1B over several stages on each rank.

#include "sim/schedule/chunk_order.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec interleaved_fields{
    .title = "1F1B over several stages on each device.",
    .fields = {chunks_field(), group_field(),
               config::boolean("overlap_moe")
                   .fallback("false")
                   .doc("Runs one more forward in advance, and each forward as one op with an independent backward "
                        "(Megatron's overlap of expert communication).")}};

struct InterleavedOptions {
  int group = 0;
  bool overlap_moe = false;
  friend bool operator==(const InterleavedOptions&, const InterleavedOptions&) = default;
};

void read_interleaved(const config::Value& map, ScheduleOptions& options) {
  options.keep(InterleavedOptions{option_or(map, "group", 0), option_is(map, "overlap_moe", "true")});
}

// Rank r runs 2(p - 1 - r) + (v - 1) group forwards ahead, so that the micro-batch that comes back from the last chunk
// finds it free.
void interleaved_order(const RankInput& r, RankOps& ops) {
  const auto [group, overlap] = r.in.options.as<InterleavedOptions>();
  const ChunkOrder order = chunk_order_of(r, "interleaved", group);
  whole_backward(order, 2 * (r.ranks - 1 - r.rank) + (r.chunks - 1) * order.group() + overlap, overlap, ops);
}

}  // namespace

extern const ScheduleDef interleaved{
    .name = "interleaved",
    .summary =
        "1F1B with v stages on each device: the bubble is v times smaller, and there are v times as many messages",
    .source = "Narayanan et al., Efficient Large-Scale Language Model Training (Megatron-LM), SC 2021",
    .placement = Placement::Loop,
    .chunks = {2, kManyChunks},
    .fields = &interleaved_fields,
    .read = read_interleaved,
    .rank = interleaved_order,
};

}  // namespace stagecraft::schedules
