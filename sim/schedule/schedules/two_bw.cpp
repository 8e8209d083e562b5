// The schedule `2bw`: 1F1B without a flush, on two weight versions.

#include <fmt/core.h>

#include "sim/core/text.hpp"

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec two_bw_fields{.title = "1F1B without a flush, on two weight versions.",
                                    .fields = {drain_every_field()}};

// 1F1B that never drains: micro-batches run on through the iterations. Two weight versions are enough when the
// micro-batches of an iteration are at least the forwards a stage runs ahead (PipeDream-2BW, section 3.1).
void two_bw_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  const int depth = in.depth[stage];
  if (in.plan.micro_batches_run(stage) < depth - 1)
    throw Infeasible("micro-batches",
                     fmt::format("2bw keeps two weight versions, which needs at least {} in an iteration for a "
                                 "pipeline {} deep; there are {}",
                                 pluralize(depth - 1, "micro-batch", "es"), pluralize(depth, "stage"),
                                 in.plan.micro_batches_run(stage)),
                     fmt::format("set run.micro_batches to {} or more", depth - 1));
  alternate(micro_batches, depth, 1, ops);
}

}  // namespace

extern const ScheduleDef two_bw{
    .name = "2bw",
    .summary = "1F1B without a flush, with two weight versions in turn",
    .source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021",
    .weights = "2bw",
    .flushes = false,
    .fields = &two_bw_fields,
    .stage = two_bw_order,
};

}  // namespace stagecraft::schedules
