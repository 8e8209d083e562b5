#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/schedule/layout.hpp"
#include "sim/schedule/options.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What the simulator finds for an order; the report defines makespan and period.
struct OrderResult {
  Seconds makespan, period;
  IdVector<DeviceId, Bytes> memory;  ///< Peaks.
};

/// What a schedule may use to decide an order.
struct ScheduleInput {
  const Plan& plan;
  const StageCosts& costs;
  int iterations = 1;
  ScheduleOptions options = {};      ///< From read_options(); empty: the defaults.
  const Cluster* cluster = nullptr;  ///< The links that messages cross; null: messages cost nothing.
  bool one_send_at_a_time = true;    ///< A device sends its messages one after the other.
  /// Simulates iterations of an order; returns nothing when it cannot run. The function is empty without a scenario.
  std::function<std::optional<OrderResult>(const Schedule&)> simulate = {};
  /// The micro-batches in flight that keep a stage busy: the number of stages on the longest path to a sink, the stage
  /// itself included. Replicas that take turns count as one more stage each, and share the micro-batches in flight.
  IdVector<StageId, int> depth = {};
  Layout layout = {};  ///< The ranks and chunks of a schedule with a placement.
};

/// Appends the ops of one replica of a stage, which numbers the micro-batches that it runs.
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

/// `warmup` forwards, then backwards and forwards alternately, `group` at a time, then the remaining backwards.
void alternate(int micro_batches, int warmup, int group, OpList& ops);

/// One rank of a schedule with a placement.
struct RankInput {
  const ScheduleInput& in;
  int rank, ranks, chunks, micro_batches;
};

/// One entry of the catalog: one file in sim/schedule/schedules/.
///
/// It has one of three functions: the order of one stage, the order of one rank (with the stages where `placement` puts
/// them), or the whole schedule of one iteration (of `in.iterations` when it does not flush). build_schedule() adds
/// iterations, updates after the last backward of each iteration, and recomputation.
struct ScheduleDef {
  std::string_view name, summary, source;
  std::string_view weights = "flush";  ///< The weights policy it goes with.
  bool flushes = true;                 ///< False: called once for all micro-batches between two drains.
  bool trains = true;                  ///< False: forward only, no updates.
  bool tasks = false;                  ///< Runs the stages of a plan in which each does a single task.
  bool equal_sizes = true;             ///< Needs the same micro-batch size on every stage.
  bool turns = true;                   ///< With `stage`: replicas may take micro-batches in turn.
  VocabularyPasses vocabulary = VocabularyPasses::None;  ///< Needs a plan whose ranks divide the vocabulary.
  bool braids = false;  ///< Ops that run as one alternate unit by unit, and hide each other's tensor collectives.
  Placement placement = Placement::Any;
  ChunkRange chunks = {};                                          ///< Stages on each rank.
  const config::MapSpec* fields = nullptr;                         ///< Fields of its options in a scenario.
  void (*read)(const config::Value&, ScheduleOptions&) = nullptr;  ///< Reads the options from the scenario.
  int (*turn)(int ranks, int micro_batches) = nullptr;  ///< Bidirectional: consecutive micro-batches of a direction.
  void (*stage)(const ScheduleInput&, StageId, int micro_batches, OpList&) = nullptr;
  void (*rank)(const RankInput&, RankOps&) = nullptr;
  Schedule (*whole)(const ScheduleInput&) = nullptr;
};

namespace schedules {
Catalog<ScheduleDef> catalog();
}

/// An option of schedules that do not flush.
config::Field drain_every_field();
/// An option of schedules that can update more often than once in an iteration.
config::Field update_field();
/// The options in a checked `run.schedule` map, or the defaults when it is null.
ScheduleOptions read_options(const ScheduleDef&, const config::Value* map);
/// Iterations between two drains; 0: none before the end. `options` is such a map.
int drain_every(const ScheduleDef&, const config::Value* options);

/// The schedule's options from key=value, checked; nothing when the schedule has no options.
std::optional<config::Value> options_of(const ScheduleDef&, const std::vector<std::string>& sets);

/// An option of schedules with any number of stages on a device.
config::Field chunks_field();
/// Where the schedule wants the stages, with these options.
PlacementRule placing_of(const ScheduleDef&, const config::Value* options);

/// A plan without a model for p ranks; InputError when the schedule cannot have that number of chunks or micro-batches.
Plan plan_for(const ScheduleDef&, const PlacementRule&, int ranks, int chunks, int micro_batches);
Plan plan_for(const ScheduleDef&, int ranks, int chunks, int micro_batches);  ///< Placed by the defaults.

/// The order of every rank for all iterations. Fills in `depth` and `layout`.
Schedule build_schedule(const ScheduleDef&, ScheduleInput);

/// Whether stages of a schedule may be on the same device.
enum class DeviceSharing : std::uint8_t { Refused, Allowed };

/// Puts the order of each stage into the rows of its ranks. InputError when stages share a device and may not.
Schedule by_stage(const Plan&, std::string_view schedule, DeviceSharing sharing,
                  const std::function<void(StageId, OpList&)>& order);

/// Puts the order of each rank of the layout into its row.
Schedule by_rank(const ScheduleInput&, int micro_batches, const std::function<void(const RankInput&, RankOps&)>& order);

/// Repeats one iteration and adds an update of each stage after its last backward (or weight gradient), or at the end
/// for stages with a twin or tied weights, and an R before each B of stages that recompute, unless the order has it.
/// Ops that run as one stay together.
Schedule complete(const Schedule& iteration, const Plan& plan, int iterations);

/// Infeasible unless the condition holds; `need` completes "needs", such as "an even number".
void require_micro_batches(bool enough, std::string_view schedule, std::string_view need, int micro_batches);
/// Infeasible for an odd number: two pipelines meet in the middle.
void require_even_ranks(int ranks, std::string_view schedule);

}  // namespace stagecraft
