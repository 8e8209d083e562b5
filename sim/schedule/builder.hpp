#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_cost.hpp"
#include "sim/schedule/layout.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// A whole order played through with all that the simulator knows. Times are those of the report.
struct Played {
  Seconds makespan, period;
  std::vector<Bytes> memory;  ///< Most of each device.
};

/// What a schedule may look at when it decides an order.
struct ScheduleInput {
  const Plan& plan;
  const StageCosts& costs;
  int iterations = 1;
  const config::Value* options = nullptr;  ///< The checked `run.schedule` map; null when made without a scenario.
  const Cluster* cluster = nullptr;        ///< What messages cross; null: they cost nothing.
  bool one_send_at_a_time = true;          ///< A device sends its messages one after the other.
  /// Plays one iteration of an order again and again; nothing when it cannot run. Not there without a scenario.
  std::function<std::optional<Played>(const Schedule&)> play = {};
  /// Of each stage: micro-batches in flight that keep it busy, which are the stages on the longest path to a sink,
  /// itself included. Replicas that take turns count as one more stage each, and share what is in flight.
  std::vector<int> depth = {};
  Layout layout = {};  ///< Of plans for schedules with a placement.
};

/// An option of the schedule as a number, or `fallback` when it is not given.
int option_or(const ScheduleInput&, std::string_view name, int fallback);
double option_or(const ScheduleInput&, std::string_view name, double fallback);
bool option_is(const ScheduleInput&, std::string_view name, std::string_view word);

/// Appends the ops of one replica of a stage, which counts the micro-batches that it takes.
class OpList {
 public:
  OpList(std::vector<Op>& ops, StageId stage, int first = 0, int turns = 1)
      : ops_(&ops), stage_(stage), first_(first), turns_(turns) {}
  void add(OpKind kind, int micro) { ops_->push_back({kind, false, stage_, first_ + micro * turns_}); }
  void forward(int micro) { add(OpKind::Forward, micro); }
  void backward(int micro) { add(OpKind::Backward, micro); }

 private:
  std::vector<Op>* ops_;
  StageId stage_;
  int first_, turns_;
};

/// `warmup` forwards, then a backward and a forward in turn, `group` at a time, then the backwards that are left.
void alternate(int micro_batches, int warmup, int group, OpList& ops);

/// One rank of a schedule with a placement.
struct RankInput {
  const ScheduleInput& in;
  int rank, ranks, chunks, micro_batches;
};

/// One entry of the catalogue: one file in sim/schedule/schedules/.
///
/// A family gives the order of one stage, the order of one rank (where the stages lie as `placement` says), or the
/// whole schedule of one iteration (of `in.iterations` where it does not flush). Iterations, updates behind the last
/// backward of each iteration, and recomputation are added by build_schedule.
struct ScheduleDef {
  std::string_view name, summary, source;
  std::string_view weights = "flush";  ///< The weights policy it goes with.
  bool flushes = true;                 ///< False: asked once for all micro-batches between two drains.
  bool trains = true;                  ///< False: forward only, no updates.
  bool tasks = false;                  ///< Runs stages that do a single task each, which only such a plan has.
  bool equal_sizes = true;             ///< Needs the same micro-batch size on every stage.
  bool turns = true;                   ///< Of `stage`: its replicas may take micro-batches in turn.
  Placement placement = Placement::Any;
  ChunkRange chunks = {};  ///< Stages on each rank.
  const config::MapSpec* fields = nullptr;
  int (*turn)(int ranks, int micro_batches) = nullptr;  ///< Both directions: micro-batches that follow each other.
  void (*stage)(const ScheduleInput&, StageId, int micro_batches, OpList&) = nullptr;
  void (*rank)(const RankInput&, RankOps&) = nullptr;
  Schedule (*whole)(const ScheduleInput&) = nullptr;
};

namespace schedules {
Catalog<ScheduleDef> all();
}

/// For the options of a schedule that does not flush.
config::Field drain_every_field();
/// For the options of a schedule that can update more often than once in an iteration.
config::Field update_field();
/// Iterations between two drains; 0: none before the end. `options` is the checked `run.schedule` map, or null.
int drain_every(const ScheduleDef&, const config::Value* options);

/// The schedule's options from key=value, checked; nothing when it has none.
std::optional<config::Value> options_of(const ScheduleDef&, const std::vector<std::string>& sets);

/// For the options of a schedule with any number of stages on a device.
config::Field chunks_field();
/// Where the schedule wants the stages, with these options.
Placing placing_of(const ScheduleDef&, const config::Value* options);

/// A plan without a model for p ranks; InputError when the schedule cannot have so many chunks or micro-batches.
Plan plan_for(const ScheduleDef&, const Placing&, int ranks, int chunks, int micro_batches);
Plan plan_for(const ScheduleDef&, int ranks, int chunks, int micro_batches);  ///< Placed as it is without options.

/// The schedule of every device for all iterations. Fills in `depth` and `layout`.
Schedule build_schedule(const ScheduleDef&, ScheduleInput);

/// Puts the order of each stage on each of its devices. InputError when stages share a device, unless `share`.
Schedule by_stage(const Plan&, std::string_view schedule, bool share,
                  const std::function<void(StageId, OpList&)>& order);

/// Puts the order of each rank on each of its devices.
Schedule by_rank(const ScheduleInput&, int micro_batches, const std::function<void(const RankInput&, RankOps&)>& order);

/// Repeats one iteration, with an update of each stage behind its last backward (or weight gradient), of stages with a
/// twin or tied weights at the end, and an R before each B of stages that recompute, unless the order has it.
/// Ops that run as one stay together.
Schedule complete(const Schedule& iteration, const Plan& plan, int iterations);

/// Infeasible unless the condition holds: what the schedule needs of the micro-batches, such as "an even number".
void require_micro_batches(bool enough, std::string_view schedule, std::string_view need, int micro_batches);
/// Infeasible for an odd number: two pipelines meet in the middle.
void require_even_ranks(int ranks, std::string_view schedule);

}  // namespace stagecraft
