#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// Everything forward, then everything backward: every activation is alive in between.
void order(const ScheduleInput&, StageId, int micro_batches, OpList& ops) {
  for (int m = 0; m < micro_batches; ++m) ops.forward(m);
  for (int m = 0; m < micro_batches; ++m) ops.backward(m);
}

}  // namespace

extern const ScheduleDef gpipe{
    .name = "gpipe",
    .summary = "All forwards, then all backwards, then a flush",
    .source = "Huang et al., GPipe, NeurIPS 2019",
    .stage = order,
};

}  // namespace stagecraft::schedules
