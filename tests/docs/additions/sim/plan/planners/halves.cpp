#include "sim/core/diagnostic.hpp"
#include "sim/plan/planner.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec fields{
    .title = "Half of the layers on the first device, half on the second.",
    .fields = {config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of a micro-batch.")}};

Planned plan(const PlannerInput& in) {
  if (in.cluster.devices.size() < 2) throw Infeasible("devices", "two halves need two devices", "a larger cluster");
  Planned planned;
  planned.plan.stages.resize(2);
  const std::size_t layers = in.model.layers.size();
  for (std::size_t l = 0; l < layers; ++l)
    planned.plan.stages[StageId{l < layers / 2 ? 0 : 1}].shape.layers.emplace_back(static_cast<std::int64_t>(l));
  for (int s = 0; s < 2; ++s) {
    Stage& stage = planned.plan.stages[StageId{s}];
    stage.name = s == 0 ? "first" : "second";
    stage.place_on({DeviceId{s}});
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
