#include "sim/core/diagnostic.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec fields{
    .title = "Half of the layers on the first device, half on the second.",
    .fields = {config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of a micro-batch.")}};

Planned plan(const PlannerInput& in) {
  if (in.cluster.devices.size() < 2) throw Infeasible("devices", "two halves need two devices", "a larger cluster");
  Planned planned;
  planned.plan.stages.resize(2);
  Stage &first = planned.plan.stages.front(), &second = planned.plan.stages.back();
  const LayerId half{in.model.layers.size() / 2};
  for (const LayerId l : in.model.layers.ids()) (l < half ? first : second).shape.layers.push_back(l);
  first.name = "first";
  second.name = "second";
  for (const StageId s : planned.plan.stages.ids()) {
    Stage& stage = planned.plan.stages[s];
    stage.place_on({DeviceId{s.value}});
    stage.micro_batch_size = in.options.micro_batch_size;
  }
  finish_plan(planned.plan, in, false);
  return planned;
}

}  // namespace

extern const PlannerDef halves{
    .name = "halves",
    .summary = "Half of the layers each on two devices",
    .source = "an example",
    .fields = &fields,
    .plan = plan,
};

}  // namespace stagecraft::planners
