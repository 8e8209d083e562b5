#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// A stage runs ahead of its backward by the stages behind it, so at most that many activations are alive.
void order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  alternate(micro_batches, in.depth[stage], 1, ops);
}

}  // namespace

extern const ScheduleDef one_f_one_b{
    .name = "1f1b",
    .summary = "One forward, one backward in turn, with a flush after each iteration",
    .source = "Narayanan et al., PipeDream-Flush, ICML 2021; Fan et al., DAPPLE, PPoPP 2021",
    .stage = order,
};

}  // namespace stagecraft::schedules
