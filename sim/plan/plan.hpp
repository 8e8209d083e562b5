#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/mesh.hpp"
#include "sim/core/dag.hpp"
#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"
#include "sim/cost/stage_shape.hpp"
#include "sim/plan/load_table.hpp"
#include "sim/plan/reductions.hpp"

namespace stagecraft {

/// Whether the replicas of a stage divide the samples of each micro-batch, or the micro-batches, which they take
/// round-robin (PipeDream's 1F1B-RR).
enum class Share : std::uint8_t { Samples, MicroBatches };

/// The part of the training of its layers that a stage does. A stage with a single task runs it as its forward, and
/// gradients come and go as activations do. An update, and taking in its result elsewhere, happen once in an iteration.
enum class StageTask : std::uint8_t { Whole, Forward, InputGradient, WeightGradient, Update, TakeWeights };

/// A convex part of the model (`shape` says which, and how it is divided) and the devices that run it.
struct Stage {
  std::string name;
  StageShape shape;
  Mesh dense, expert;  ///< One set of devices: dense layers run on `dense`, experts on `expert`. place_on() sets both.
  /// One device for each replica; place_on() sets them. Where a group of devices computes a replica together, they all
  /// do the same work at the same time, so the first of them stands for the others: it alone has instructions, and its
  /// memory and its messages are what each of them has.
  std::vector<DeviceId> leaders;
  StageTask task = StageTask::Whole;
  bool divides_itself = false;   ///< Its group or sharding is not the plan's.
  Share share = Share::Samples;  ///< What the data axis shares.
  int micro_batch_size = 1;      ///< Samples.
  Load mean_load;                ///< What a sample is, in the mean; where micro-batches differ, a sample is a pack.
  int group = 1;                 ///< k of kFkB: micro-batches done forward, then backward, together.
  std::vector<int> micros;       ///< Micro-batches of one iteration that it runs, ascending; empty: all. Pipelines in
                                 ///< both directions divide an iteration.
  StageId twin;  ///< The stage that runs the other micro-batches with a copy of the same weights; usually not valid.

  /// The leaders and the devices that they stand for, by rank.
  const std::vector<DeviceId>& all_devices() const { return dense.devices; }
  /// Places both meshes on these devices, with the number of replicas that they allow. `devices` ascend by rank.
  void place_on(const std::vector<DeviceId>& devices);
  /// Places both meshes where another stage has them.
  void place_with(const Stage& other);
  int replicas() const { return shape.degrees.replicas; }
  /// Micro-batches that its replicas run in parallel: replica r has a part in every turns()-th, from number r on.
  int turns() const { return share == Share::MicroBatches ? replicas() : 1; }
};

/// The stage undivided, on its first device.
Stage on_one_device(Stage);

/// Data that flows from one stage to another: forward, and its gradient back.
struct StageEdge {
  StageId from, to;
  Bytes bytes;        ///< Bytes of one sample. Zero: only an order, which costs an empty message each way.
  int array = -1;     ///< Which array of its stage it carries. On one device the array stays there until the last stage
                      ///< that an edge carries it to has used it; negative: a stash has it.
  Bytes of_sample{};  ///< The part of `bytes` that is the same however many tokens a sample has.

  /// Bytes of this number of samples with the same load each.
  double bytes_of(double samples, const Load& load) const {
    return ((bytes - of_sample).value * load.rows + of_sample.value) * (samples * load.samples);
  }
};

/// What the ranks of a pipeline exchange where they divide the vocabulary: see StageShape::vocabulary. Of one sample,
/// on one device: the devices of a group divide the rows, and each exchanges its part with the devices in its place on
/// other ranks.
struct PlanVocabulary {
  Bytes input;        ///< The input of the scores, which leaves the last stage; its gradient has the same size.
  Bytes statistics;   ///< Maximum, sum of exponentials and score of the label of each token, in fp32.
  Bytes embedding{};  ///< The output of the embedding: each rank has the rows of its words, and the first stage needs
                      ///< the sum. Its gradient has the same size, and goes to all ranks.
};

/// Who does what: stages as a DAG, with devices and replicas.
struct Plan {
  IdVector<StageId, Stage> stages;
  std::vector<StageEdge> edges;
  int mini_batch = 1;  ///< Samples in one iteration.
  LoadTable loads;     ///< Empty where all micro-batches are alike; set_loads() makes it.
  /// Equal sets of replicas. Where there are several, the plan has the samples and the replicas of one, which stands
  /// for the others: see sim/experiment/fold_replicas.hpp. Its reductions have their prices, and among their members
  /// its own.
  int copies = 1;
  /// What derive_reductions() says about the stages above. A schedule that never flushes has no moment at which all
  /// gradients of tied parameters exist, so their reductions are removed there.
  IdVector<ReductionId, Reduction> reductions;
  std::optional<PlanVocabulary> vocabulary = {};  ///< Nothing: the first and the last stage have its layers.

  int stage_count() const { return static_cast<int>(stages.size()); }
  /// Number of stages of the model: two stages that hold copies of the same weights count once.
  int different_stages() const;
  const Stage& stage(StageId s) const { return stages[s]; }
  /// Whether each stage does all of the training of its layers: no layer has stages for its forward, its gradients and
  /// its updates apart, as the planner `layerpipe` makes them.
  bool has_whole_stages() const;
  /// Micro-batches of this stage's size in one iteration.
  int micro_batches(StageId s) const { return mini_batch / stage(s).micro_batch_size; }
  /// Micro-batches in one iteration that the stage runs itself; its twin runs the others.
  int micro_batches_run(StageId s) const {
    return stage(s).micros.empty() ? micro_batches(s) : static_cast<int>(stage(s).micros.size());
  }
  /// Micro-batches in one iteration that each replica of the stage has a part in.
  int micro_batches_per_replica(StageId s) const { return micro_batches_run(s) / stage(s).turns(); }
  Digraph graph() const;
  /// Last device that any stage names, plus one.
  int device_count() const;
};

/// All devices of the stages, each once, in ascending order.
std::vector<DeviceId> devices_of(const Plan&);

/// All devices below `count`: first the devices of the stages, in the order in which the stages name them, then the
/// others. Ties are broken in this order, so the order of the cluster does not matter.
std::vector<DeviceId> devices_by_stage(const Plan&, int count);

/// The pipeline rank of each device of the plan. Devices that have a part in the same micro-batches of the same stages
/// are one rank: replicas that divide samples, and the devices of a tensor group. Replicas that take
/// micro-batches in turn are a rank each, and so is a device without a stage. Ranks are numbered by their first
/// devices.
IdVector<DeviceId, RankId> ranks_of(const Plan&);

/// p stages one after the other, one device each (stage s on rank s % ranks); for use without a model.
Plan chain_plan(int stages, int ranks, int micro_batches);

/// Throws InputError or Infeasible with everything wrong: cycle, sizes that do not nest, micro-batch smaller than the
/// replicas, mini-batch not a multiple. Planners call it before they return a plan.
void check_plan(const Plan&);

/// Adds an order edge between each stage and the next in topological order: a graph run as a sequence, which is the
/// baseline that graph pipelines are compared with (GraphPipe, ASPLOS 2025, section 7).
void make_sequential(Plan&);

std::string to_text(const Plan&);

}  // namespace stagecraft
