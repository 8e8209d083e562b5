// The schedule `gpipe`: all forwards, then all backwards.

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec gpipe_fields{
    .title = "All forwards, then all backwards.",
    .fields = {
        config::choice("backward", std::vector<std::string>{"forward", "reverse"})
            .fallback("forward")
            .doc("Order of the micro-batches in backward: the order of forward, or the last first (torchgpipe)."),
        config::boolean("keep_last")
            .fallback("false")
            .doc("Recompute every micro-batch except the last (torchgpipe's except_last). Requires plan.recompute: "
                 "none.")}};

struct GpipeOptions {
  bool reverse = false, keep_last = false;
  friend bool operator==(const GpipeOptions&, const GpipeOptions&) = default;
};

void read_gpipe(const config::Value& map, ScheduleOptions& options) {
  options.keep(GpipeOptions{option_is(map, "backward", "reverse"), option_is(map, "keep_last", "true")});
}

// Everything forward, then everything backward: every activation is alive in between.
void gpipe_order(const ScheduleInput& in, StageId stage, int micro_batches, OpList& ops) {
  const auto [reverse, keep_last] = in.options.as<GpipeOptions>();
  if (keep_last && in.plan.stage(stage).shape.recomputes_all())
    throw InputError("gpipe with keep_last recomputes by itself", "write plan.recompute: none");
  for (int m = 0; m < micro_batches; ++m) ops.forward(m);
  for (int i = 0; i < micro_batches; ++i) {
    const int m = reverse ? micro_batches - 1 - i : i;
    if (keep_last && m + 1 < micro_batches) ops.add(OpKind::Recompute, m);
    ops.backward(m);
  }
}

}  // namespace

extern const ScheduleDef gpipe{
    .name = "gpipe",
    .summary = "All forwards, then all backwards, then a flush",
    .source = "Huang et al., GPipe, NeurIPS 2019; Kim et al., torchgpipe, 2020",
    .fields = &gpipe_fields,
    .read = read_gpipe,
    .stage = gpipe_order,
};

}  // namespace stagecraft::schedules
