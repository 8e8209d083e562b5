#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec pipedream_fields{.title = "1F1B without a flush.",
                                       .fields = {update_field(), drain_every_field()}};

// 1F1B whose micro-batches run on through the updates: a stage keeps as many in flight as there are devices from it on,
// divided among its replicas where these take turns, rounded up (1F1B-RR).
void pipedream_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  alternate(micro_batches, in.depth[stage], 1, ops);
}

}  // namespace

extern const ScheduleDef pipedream{
    .name = "pipedream",
    .summary = "1F1B without a flush, with an update after any number of micro-batches",
    .source = "Narayanan et al., PipeDream, SOSP 2019",
    .weights = "stash",
    .flushes = false,
    .fields = &pipedream_fields,
    .stage = pipedream_order,
};

}  // namespace stagecraft::schedules
