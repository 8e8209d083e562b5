#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

void order(const ScheduleInput&, StageId, int micro_batches, OpList& ops) {
  for (int m = 0; m < micro_batches; ++m) ops.forward(m);
  for (int m = micro_batches; m-- > 0;) ops.backward(m);
}

}  // namespace

extern const ScheduleDef last_in_first_out{
    .name = "last-in-first-out",
    .summary = "All forwards, then all backwards, the last micro-batch first",
    .source = "an example",
    .stage = order,
};

}  // namespace stagecraft::schedules
