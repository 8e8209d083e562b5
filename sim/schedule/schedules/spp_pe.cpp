#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// The forward of stage s, the message after it, ... and the way back are blocks j = 0, 1, ..., 4S - 4 of a micro-batch,
// with the last stage's forward and backward one block. In the order of m + j, larger j first, a stage with d stages
// from it on runs 4(d - 1) forwards ahead.
void spp_pe_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  alternate(micro_batches, 4 * (in.depth[stage] - 1), 1, ops);
}

}  // namespace

extern const ScheduleDef spp_pe{
    .name = "spp-pe",
    .summary = "List order by micro-batch plus block: at most (m + 4S - 4) times the slowest block",
    .source = "Luo et al., Efficient Pipeline Planning for Expedited Distributed DNN Training, INFOCOM 2022",
    .stage = spp_pe_order,
};

}  // namespace stagecraft::schedules
