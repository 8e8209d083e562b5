// The schedule `layerpipe`: a modulo schedule of the tasks of single layers that the planner `layerpipe` makes; every
// interval starts a micro-batch.

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sim/plan/overlap.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/v_shape/steps.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec layerpipe_fields{
    .title = "A modulo schedule of tasks: every device runs each of its tasks once in every interval.",
    .fields = {
        config::integer("slack", 0, 1000)
            .fallback("1")
            .doc("Intervals within which a message between two devices has to arrive; 0: messages take no time.")}};

struct LayerPipeOptions {
  int slack = 1;
  friend bool operator==(const LayerPipeOptions&, const LayerPipeOptions&) = default;
};

void read_layerpipe(const config::Value& map, ScheduleOptions& options) {
  options.keep(LayerPipeOptions{option_or(map, "slack", 1)});
}

void require_tasks(const Plan& plan) {
  for (const Stage& stage : plan.stages)
    if (stage.task == StageTask::Whole && !stage.shape.layers.empty())
      throw InputError(
          fmt::format(
              "the schedule 'layerpipe' runs forward and gradients of a layer apart, but stage '{}' does all of "
              "them",
              stage.name),
          "write plan: {planner: layerpipe}");
}

/// The intervals by which each task runs after the first: no more than its inputs from its own device, and one interval
/// plus the slack more than its inputs from other devices.
std::vector<int> interval_offsets(const Plan& plan, const std::vector<int>& order, int slack) {
  std::vector<int> offset(plan.stages.size(), 0);
  const EdgeLists edges(plan);
  for (const int s : order)
    for (const int e : edges.out[StageId{s}]) {
      const StageId to = plan.edges[e].to;
      const bool apart = plan.stage(to).leaders != plan.stage(StageId{s}).leaders;
      offset[to.value] = std::max(offset[to.value], offset[s] + (apart ? 1 + slack : 0));
    }
  return offset;
}

// In every interval each device runs its tasks in the order of the graph, each on its next micro-batch, and
// updates after the last of an iteration. No task waits for one of its own interval on another device, so an interval
// lasts as long as the busiest device works.
Schedule layerpipe_order(const ScheduleInput& in) {
  require_tasks(in.plan);
  const std::vector<int> sorted = topological_order(in.plan.graph()).value();
  const std::vector<int> offset = interval_offsets(in.plan, sorted, in.options.as<LayerPipeOptions>().slack);
  const int total = in.plan.micro_batches(StageId{0}) * in.iterations;
  std::vector<Op> tasks;
  std::vector<int> intervals;  // [task]
  for (const int s : sorted) {
    const StageId stage{s};
    const int each = in.plan.micro_batches(StageId{0}) / in.plan.micro_batches(stage);
    for (int micro = 0; micro < total / each; ++micro) {
      tasks.push_back({OpKind::Forward, false, stage, micro});
      intervals.push_back(offset[s] + (micro + 1) * each - 1);
    }
  }
  Schedule schedule = empty_schedule(in.plan);
  IdVector<StageId, std::set<RankId>> ranks(in.plan.stages.size());
  for (const StageId s : in.plan.stages.ids())
    for (const DeviceId device : in.plan.stages[s].leaders) ranks[s].insert(schedule.rank(device));
  for (const int i : in_order(intervals))
    for (const RankId rank : ranks[tasks[i].stage]) schedule.ranks[rank].push_back(tasks[i]);
  return schedule;
}

}  // namespace

extern const ScheduleDef layerpipe{
    .name = "layerpipe",
    .summary =
        "Passes of layers as separate tasks; every interval, as long as the work of the busiest device, starts a "
        "micro-batch",
    .source = "Unnikrishnan and Parhi, LayerPipe, ICCAD 2021",
    .weights = "stash",
    .flushes = false,
    .trains = false,
    .tasks = true,
    .equal_sizes = false,
    .fields = &layerpipe_fields,
    .read = read_layerpipe,
    .whole = layerpipe_order,
};

}  // namespace stagecraft::schedules
