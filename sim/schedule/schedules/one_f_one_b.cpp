#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// A stage runs as many forwards before its first backward as there are stages from it on, so at most that many
// activations are alive.
void one_f_one_b_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  alternate(micro_batches, in.depth[stage], 1, ops);
}

}  // namespace

extern const ScheduleDef one_f_one_b{
    .name = "1f1b",
    .summary = "One forward, one backward in turn, with a flush after each iteration",
    .source = "Narayanan et al., PipeDream-Flush, ICML 2021; Fan et al., DAPPLE, PPoPP 2021",
    .stage = one_f_one_b_order,
};

}  // namespace stagecraft::schedules
