#include "sim/schedule/rank_costs.hpp"
#include "sim/schedule/zero_bubble.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{.title = "Zero bubble from the costs.", .fields = {memory_field("1")}};

Schedule whole(const ScheduleInput& in) { return automatic_zero_bubble(in, "zb-1p", option_or(in, "memory", 1.0)); }

}  // namespace

extern const ScheduleDef zb_1p{
    .name = "zb-1p",
    .summary = "Order found from the costs, in the memory of 1F1B",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3",
    .placement = Placement::Linear,
    .fields = &fields,
    .whole = whole,
};

}  // namespace stagecraft::schedules
