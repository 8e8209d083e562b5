// The schedule `graph`: kFkB on a DAG of stages, each with its own k and micro-batch size; on a chain of equal stages
// it is 1F1B.

#include <algorithm>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/in_flight.hpp"

namespace stagecraft::schedules {
namespace {

using config::integer;

const config::MapSpec graph_fields{
    .title = "kFkB on a DAG of stages.",
    .fields = {integer("extra_in_flight", 0, 1 << 20)
                   .fallback("0")
                   .doc("Samples in flight on every edge in addition to the schedule's rule, so that slow links do not "
                        "starve a stage.")},
};

struct GraphOptions {
  int extra_in_flight = 0;
  friend bool operator==(const GraphOptions&, const GraphOptions&) = default;
};

void read_graph(const config::Value& map, ScheduleOptions& options) {
  options.keep(GraphOptions{option_or(map, "extra_in_flight", 0)});
}

// Each stage runs ahead by the in-flight rule, then `group` backwards and `group` forwards in turn. On a chain of equal
// stages this is 1F1B; on any DAG of equal stages it cannot deadlock and has makespan 2(m + D - 1) at unit costs.
Schedule graph_whole(const ScheduleInput& in) {
  const int extra = in.options.as<GraphOptions>().extra_in_flight;
  const auto samples = in_flight_samples(in.plan, std::vector<double>(in.plan.edges.size(), extra));
  return by_stage(in.plan, "graph", DeviceSharing::Refused, [&](StageId s, OpList& ops) {
    const Stage& stage = in.plan.stage(s);
    const int ahead = samples[s] / stage.micro_batch_size;
    alternate(in.plan.micro_batches_run(s), ahead, stage.group, ops);
  });
}

}  // namespace

extern const ScheduleDef graph{
    .name = "graph",
    .summary = "kFkB on a DAG of stages: branches run in parallel, and each stage has its own micro-batch size",
    .source = "Jeon et al., GraphPipe, ASPLOS 2025",
    .equal_sizes = false,
    .fields = &graph_fields,
    .read = read_graph,
    .whole = graph_whole,
};

}  // namespace stagecraft::schedules
