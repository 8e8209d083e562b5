// The schedule `seq1f1b`: 1F1B over slices of sequences.

#include <algorithm>

#include <fmt/core.h>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/slices.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec seq1f1b_fields{.title = "1F1B over slices of sequences.", .fields = slice_fields()};

void read_seq1f1b(const config::Value& map, ScheduleOptions& options) { options.keep(read_slices(map)); }

// Slices go forward in order. Attention of a later slice reads the keys and values of the earlier, so the gradients of
// a sequence come back last slice first, and a rank runs ahead by one whole sequence more than 1F1B less one slice.
void seq1f1b_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  const int slices = in.options.as<Slices>().slices;
  require_micro_batches(micro_batches % slices == 0, "seq1f1b", fmt::format("a multiple of {} slices", slices),
                        micro_batches);
  const int ahead = std::min(in.depth[stage] - 2 + slices, micro_batches);
  for (int k = 0; k < micro_batches + ahead; ++k) {
    if (k < micro_batches) ops.forward(k);
    const int i = k - ahead;
    if (i >= 0) ops.backward(i / slices * slices + slices - 1 - i % slices);
  }
}

}  // namespace

extern const ScheduleDef seq1f1b{
    .name = "seq1f1b",
    .summary = "1F1B over slices of sequences: the bubble and the activations of a slice instead of a micro-batch",
    .source = "Sun et al., Seq1F1B, 2024; sail-sg/zero-bubble-pipeline-parallelism, seq1f1b.py",
    .turns = false,
    .fields = &seq1f1b_fields,
    .read = read_seq1f1b,
    .stage = seq1f1b_order,
};

}  // namespace stagecraft::schedules
