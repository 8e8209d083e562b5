// The planner `graphpipe`: a graph of stages by GraphPipe's partitioner, with parallel branches, the least time of the
// slowest stage, and then the fewest micro-batches in flight.

#include "sim/planners/chain_partition/planning.hpp"
#include "sim/planners/graph/partition.hpp"
#include "sim/planners/graph/planning.hpp"

namespace stagecraft::planners {
namespace {

config::MapSpec graphpipe_fields() {
  config::MapSpec spec{"A graph of stages with the least time of the slowest one.", graph::common_fields()};
  spec.fields.push_back(
      config::integer("steps", 1, 1e15)
          .fallback("2e8")
          .doc("Most parts of the graph that the search examines before it gives up. The default takes some seconds."));
  return spec;
}

const config::MapSpec kGraphpipeFields = graphpipe_fields();

Planned plan_graphpipe(const PlannerInput& input) {
  const graph::GraphPlanInput plan_input = graph::plan_input_of(input);
  const auto division = graph::partition(plan_input.problem, *input.options.effort);
  if (!division)
    graph::refuse(input, plan_input, "stages of neighboring layers and whole branches",
                  "more devices or memory, smaller micro-batches, or the planner 'graph-exact'");
  Planned result = graph::planned(input, plan_input, division->parts, false);
  const CommonUnit& unit = plan_input.unit;
  result.predicted = {unit.seconds(graph::figures_of(plan_input.problem, division->parts, false).bottleneck)};
  result.model_limit = {unit.seconds(graph::least_bottleneck(plan_input.problem))};
  result.limit_reason = graph::reason_for(plan_input, "all work shared evenly, or the longest layer alone");
  if (plan_input.problem.unit > 1) set_heuristic(result, input, graph::units_text(plan_input.problem));
  chain_partition::note_idle_devices(result, input);
  result.states = division->states;
  return result;
}

}  // namespace

extern const PlannerDef graphpipe{
    .name = "graphpipe",
    .summary =
        "A graph of stages with replicas for parallel branches that minimizes the slowest stage within memory, on up "
        "to four types.",
    .source = "Jeon et al., GraphPipe, ASPLOS 2025",
    .fields = &kGraphpipeFields,
    .plan = plan_graphpipe,
};

}  // namespace stagecraft::planners
