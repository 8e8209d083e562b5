#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

void inference_order(const ScheduleInput&, StageId, int micro_batches, OpList& ops) {
  for (int m = 0; m < micro_batches; ++m) ops.forward(m);
}

}  // namespace

extern const ScheduleDef inference{
    .name = "inference",
    .summary = "Forward only, one micro-batch after the other",
    .source = "Hu et al., PipeEdge, DSD 2022",
    .trains = false,
    .stage = inference_order,
};

}  // namespace stagecraft::schedules
