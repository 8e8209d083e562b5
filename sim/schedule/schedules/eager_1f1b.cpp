#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// Twice as far ahead as 1F1B: a message each way has one step to arrive.
void eager_1f1b_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  alternate(micro_batches, 2 * in.depth[stage] - 1, 1, ops);
}

}  // namespace

extern const ScheduleDef eager_1f1b{
    .name = "eager-1f1b",
    .summary = "1F1B with twice as many warm-up forwards, so that messages overlap with computation",
    .source = "Zhuang et al., On Optimizing the Communication of Model Parallelism (AlpaComm), MLSys 2023",
    .stage = eager_1f1b_order,
};

}  // namespace stagecraft::schedules
