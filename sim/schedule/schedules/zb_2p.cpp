#include "sim/schedule/rank_costs.hpp"
#include "sim/schedule/zero_bubble.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{.title = "Zero bubble from the costs.", .fields = {memory_field("2")}};

struct MemoryOption {
  double memory = 2;
  friend bool operator==(const MemoryOption&, const MemoryOption&) = default;
};

void read(const config::Value& map, ScheduleOptions& options) {
  options.keep(MemoryOption{option_or(map, "memory", 2.0)});
}

Schedule whole(const ScheduleInput& in) {
  return automatic_zero_bubble(in, "zb-2p", in.options.as<MemoryOption>().memory);
}

}  // namespace

extern const ScheduleDef zb_2p{
    .name = "zb-2p",
    .summary =
        "Order found from the costs: 2p activations on a rank, if an input gradient frees half of one; nearly no "
        "bubble",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3",
    .placement = Placement::Linear,
    .fields = &fields,
    .read = read,
    .whole = whole,
};

}  // namespace stagecraft::schedules
