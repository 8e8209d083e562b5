#include "sim/schedule/rank_costs.hpp"
#include "sim/schedule/zero_bubble.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec zb_1p_fields{.title = "Zero bubble from the costs.", .fields = {memory_field("1")}};

struct Zb1pMemoryOption {
  double memory = 1;
  friend bool operator==(const Zb1pMemoryOption&, const Zb1pMemoryOption&) = default;
};

void read_zb_1p(const config::Value& map, ScheduleOptions& options) {
  options.keep(Zb1pMemoryOption{option_or(map, "memory", 1.0)});
}

Schedule zb_1p_whole(const ScheduleInput& in) {
  return automatic_zero_bubble(in, "zb-1p", in.options.as<Zb1pMemoryOption>().memory);
}

}  // namespace

extern const ScheduleDef zb_1p{
    .name = "zb-1p",
    .summary = "Order found from the costs: p activations on a rank, if an input gradient frees half of one",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3",
    .placement = Placement::Linear,
    .fields = &zb_1p_fields,
    .read = read_zb_1p,
    .whole = zb_1p_whole,
};

}  // namespace stagecraft::schedules
