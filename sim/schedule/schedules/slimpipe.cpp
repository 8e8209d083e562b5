// The schedule `slimpipe`: interleaved 1F1B over slices of sequences.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/schedule/chunk_order.hpp"
#include "sim/schedule/slices.hpp"

namespace stagecraft::schedules {
namespace {

config::MapSpec fields_of_slimpipe() {
  config::MapSpec spec{.title = "Interleaved 1F1B over slices of sequences.", .fields = slice_fields()};
  spec.fields.push_back(chunks_field());
  spec.fields.push_back(config::integer("ahead", 1, 2)
                            .fallback("1")
                            .doc("Forwards that a rank runs further ahead than the next. 1 is enough where messages "
                                 "take no time; 2 gives them the time of a slice."));
  return spec;
}
const config::MapSpec slimpipe_fields = fields_of_slimpipe();

struct SlimPipeOptions {
  Slices slices;
  int ahead = 1;
  friend bool operator==(const SlimPipeOptions&, const SlimPipeOptions&) = default;
};

void read_slimpipe(const config::Value& map, ScheduleOptions& options) {
  options.keep(SlimPipeOptions{read_slices(map), option_or(map, "ahead", 1)});
}

// Before its first backward, a rank runs forwards of later chunks, each of which needs the last rank's forward of the
// chunk before. The last rank waits for that backward after its backwards of the last chunk, which are as many as there
// are slices, and has run `each - 1` forwards more than backwards until then.
void require_slices(const ChunkOrder& order, int ahead, int each, int slices, int total) {
  for (int k = std::min(ahead, total - 1); k >= each; --k)
    if (order.forward(k).chunk > 0 && k - slices > each - 1 + slices)
      throw Infeasible("slices",
                       fmt::format("the schedule 'slimpipe' runs too far ahead for {}", pluralize(slices, "slice")),
                       "more slices, or run.schedule.ahead: 1", "ranks would wait for each other");
}

// A sequence goes slice by slice through the first chunk, then through the next. Its gradients come back last chunk and
// last slice first, for a later slice attends to the earlier ones; so the last rank runs all slices of all chunks of a
// sequence before its first backward, and each rank before it `ahead` forwards more.
void slimpipe_order(const RankInput& r, RankOps& ops) {
  const SlimPipeOptions options = r.in.options.as<SlimPipeOptions>();
  const int slices = options.slices.slices, each = slices * r.chunks, total = r.micro_batches * r.chunks;
  require_micro_batches(r.micro_batches % slices == 0, "slimpipe", fmt::format("a multiple of {} slices", slices),
                        r.micro_batches);
  const ChunkOrder order(r.chunks, r.micro_batches, slices);
  const int ahead = std::min(each - 1 + options.ahead * (r.ranks - 1 - r.rank), total);
  require_slices(order, ahead, each, slices, total);
  for (int k = 0; k < total + ahead; ++k) {
    if (k < total) {
      const auto [chunk, micro] = order.forward(k);
      ops.forward(chunk, micro);
    }
    if (k < ahead) continue;
    const int sequence = (k - ahead) / each;
    const auto [chunk, micro] = order.forward(sequence * each + each - 1 - (k - ahead) % each);
    ops.backward(chunk, micro);
  }
}

}  // namespace

extern const ScheduleDef slimpipe{
    .name = "slimpipe",
    .summary =
        "interleaved 1F1B over slices of sequences: rank 0 keeps little more than 1/p of the activations of a "
        "micro-batch",
    .source =
        "Li et al., SlimPipe: Memory-Thrifty and Efficient Pipeline Parallelism for Long-Context LLM Training, "
        "2025 (arXiv 2504.14519)",
    .placement = Placement::Loop,
    .chunks = {1, kManyChunks},
    .fields = &slimpipe_fields,
    .read = read_slimpipe,
    .rank = slimpipe_order,
};

}  // namespace stagecraft::schedules
