#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/dag.hpp"
#include "sim/core/ids.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// What of the training of its layers a stage does. One that does a single task runs it as its forward, and gradients
/// come and go as activations do. An update, and taking in what it makes elsewhere, happen once in an iteration.
enum class StageTask : std::uint8_t { Whole, Forward, InputGradient, WeightGradient, Update, TakeWeights };

/// What the replicas of a stage divide: the samples of each micro-batch, or the micro-batches, which they take in turn
/// (PipeDream's 1F1B-RR).
enum class Share : std::uint8_t { Samples, MicroBatches };

/// A convex part of the model and the devices that run it.
struct Stage {
  std::string name;
  std::vector<LayerId> layers;    ///< Empty in plans made without a model.
  std::vector<DeviceId> devices;  ///< More than one: replicas.
  Share share = Share::Samples;   ///< Of the replicas.
  int micro_batch_size = 1;       ///< Samples.
  int group = 1;                  ///< k of kFkB: micro-batches done forward, then backward, together.
  bool recompute = false;         ///< Its forward runs again before backward.
  bool recompute_cores = false;   ///< Backward makes the inside of each attention again, one layer at a time.
  StageTask task = StageTask::Whole;
  std::vector<int> micros;  ///< Micro-batches of one iteration that it runs, ascending; empty: all. Pipelines in
                            ///< both directions divide an iteration.
  StageId twin;             ///< The stage that runs the others, with a copy of the same weights; mostly there is none.

  /// Micro-batches that its replicas work on side by side: replica r has a part in every turns()-th, from number r on.
  int turns() const { return share == Share::MicroBatches ? static_cast<int>(devices.size()) : 1; }
};

/// Data that flows from one stage to another: forward, and its gradient back.
struct StageEdge {
  StageId from, to;
  Bytes bytes;  ///< For one sample. Zero: an order, which costs a message of no bytes each way.
};

/// Weights that layers of several stages share: each holds a copy, and their gradients are added up before any update.
struct Tie {
  std::string name;
  std::vector<StageId> stages;  ///< That hold them, ascending.
  Bytes gradient;
};

/// Who does what: stages as a DAG, with devices and replicas.
struct Plan {
  std::vector<Stage> stages;
  std::vector<StageEdge> edges;
  int mini_batch = 1;     ///< Samples in one iteration.
  std::vector<Tie> ties;  ///< Empty where the gradients do not meet: without a model, or without a flush.

  int stage_count() const { return static_cast<int>(stages.size()); }
  /// Stages of the model: two that hold copies of the same weights count once.
  int different_stages() const;
  const Stage& stage(StageId s) const { return stages[s]; }
  /// Micro-batches of this stage's size in one iteration.
  int micro_batches(StageId s) const { return mini_batch / stage(s).micro_batch_size; }
  /// Those of them that the stage runs itself.
  int own_micro_batches(StageId s) const {
    return stage(s).micros.empty() ? micro_batches(s) : static_cast<int>(stage(s).micros.size());
  }
  /// Those that each of its replicas has a part in.
  int replica_micro_batches(StageId s) const { return own_micro_batches(s) / stage(s).turns(); }
  Digraph graph() const;
  /// Last device that any stage names, plus one.
  int device_count() const;
};

/// p stages one after the other, one device each (stage s on rank s % ranks); for use without a model.
Plan chain_plan(int stages, int ranks, int micro_batches);

/// Throws InputError or Infeasible with everything wrong: cycle, sizes that do not nest, micro-batch smaller than the
/// replicas, mini-batch not a multiple. Every command that takes a plan calls it.
void check_plan(const Plan&);

/// Adds an order edge between each stage and the next in topological order: a graph run as a sequence, which is the
/// baseline that graph pipelines are compared with (GraphPipe, ASPLOS 2025, section 7).
void make_sequential(Plan&);

std::string to_text(const Plan&);

}  // namespace stagecraft
