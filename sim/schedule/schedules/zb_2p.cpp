#include "sim/schedule/rank_costs.hpp"
#include "sim/schedule/zero_bubble.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec zb_2p_fields{.title = "Zero bubble from the costs.", .fields = {memory_field("2")}};

struct Zb2pMemoryOption {
  double memory = 2;
  friend bool operator==(const Zb2pMemoryOption&, const Zb2pMemoryOption&) = default;
};

void read_zb_2p(const config::Value& map, ScheduleOptions& options) {
  options.keep(Zb2pMemoryOption{option_or(map, "memory", 2.0)});
}

Schedule zb_2p_whole(const ScheduleInput& in) {
  return automatic_zero_bubble(in, "zb-2p", in.options.as<Zb2pMemoryOption>().memory);
}

}  // namespace

extern const ScheduleDef zb_2p{
    .name = "zb-2p",
    .summary =
        "Order found from the costs: 2p activations on a rank, if an input gradient frees half of one; nearly no "
        "bubble",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3",
    .placement = Placement::Linear,
    .fields = &zb_2p_fields,
    .read = read_zb_2p,
    .whole = zb_2p_whole,
};

}  // namespace stagecraft::schedules
