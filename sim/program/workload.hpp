#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/model/model_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"
#include "sim/training/task.hpp"
#include "sim/training/training.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

/// A layer as it is computed.
struct WorkloadLayer {
  std::string name;
  std::vector<LayerId> inputs;
  std::vector<Operation> operations;  ///< Empty: the layer is known by its amounts alone and cannot be computed.
  std::string tie;                    ///< Layers with the same word share their weights.
};

/// A device that runs a stage, and the samples of a micro-batch that it works on, counted from the first of them. The
/// devices of a tensor or context group work on equal samples and have an entry each.
struct StageReplica {
  DeviceId device;
  RowRange samples;
};

/// The place of a device in the two meshes of its stage: of dense layers, and of experts.
struct GroupPlace {
  int replica = 0, context = 0, tensor = 0;
  int expert_replica = 0, expert = 0, expert_tensor = 0;
};

/// What the instructions of one stage compute.
struct StageWorkload {
  std::string name;
  std::vector<LayerId> layers;  ///< Ascending.
  std::vector<StageReplica> replicas;
  int micro_batch_size = 1;       ///< Samples, of all replicas together.
  int interleave = 1;             ///< Replica r works on each micro-batch m with m % interleave == r % interleave.
  bool recomputes = false;        ///< Its forward runs again before backward.
  bool recomputes_cores = false;  ///< Backward recomputes the inside of each attention, one layer at a time.
  StageId twin;                   ///< The stage that holds a copy of the same weights; mostly there is none.
  int vocabulary_rank = -1;       ///< Which of Workload::vocabulary_ranks parts of the words it has; -1: none.

  // How groups of devices divide the stage. A folded Program, in which the first device of a group stands for the
  // others, has a Workload without groups; unfold() fills these in.
  Degrees degrees;
  StateSharding sharding = StateSharding::None;
  bool reshard = false;  ///< See StageShape::reshard.
  ContextExchange exchange = ContextExchange::Ring;

  GroupPlace place(int replica) const {
    const int group = degrees.group(), experts = degrees.expert * degrees.expert_tensor;
    return {replica / group,   replica % group / degrees.tensor,          replica % degrees.tensor,
            replica / experts, replica % experts / degrees.expert_tensor, replica % degrees.expert_tensor};
  }
  /// Devices with the same part of the parameters, which divide the samples and the sequence among them.
  int data_ranks() const { return static_cast<int>(replicas.size()) / degrees.tensor; }
  int data_rank(int replica) const { return replica / degrees.tensor; }
  bool shards(StateSharding level) const { return sharding >= level && data_ranks() > 1; }

  int replica_on(DeviceId) const;  ///< -1: the stage does not run there.
  /// Samples of a micro-batch that a replica works on, counted through the run.
  RowRange samples(int micro_batch, int replica) const {
    const RowRange& replica_rows = replicas[replica].samples;
    return {std::int64_t{micro_batch} * micro_batch_size + replica_rows.first, replica_rows.count};
  }
  bool works_on(int micro_batch, int replica) const { return (micro_batch - replica) % interleave == 0; }
};

/// A sequence of a pack. Its number, longest first in its iteration, depends on the lengths alone, so that
/// equal sequences are the same data however they are packed.
struct Sequence {
  int number = 0, length = 0;
};

/// Samples that an op leaves on its own device for another stage there, so no message carries them.
struct Handover {
  int edge = 0;
  StageId to;
  int micro_batch = 0, replica = 0;  ///< Numbers of the receiving stage.
  RowRange rows;                     ///< Counted through the run.
};

/// What a program computes, for backends that really compute; simulators ignore it.
struct Workload {
  std::string name;  ///< Name of the model.
  IdVector<LayerId, WorkloadLayer> layers;
  IdVector<StageId, StageWorkload> stages;
  std::vector<EdgeEnds> edges;                ///< Equal to Program::edges.
  std::vector<std::vector<LayerId>> tensors;  ///< Layers whose outputs cross each edge, in the order of the model.
  Precision precision;
  double parameters = 0;
  TaskShape task;  ///< Inputs and losses of the model, for the data set.
  Training training;
  WeightsRule weights;
  /// Embedding, scores and loss where all ranks of a pipeline divide their words; else empty, and stages have them.
  std::vector<LayerId> vocabulary;
  int vocabulary_ranks = 1;
  /// Modules of which the inputs alone go to host memory (offload_modules()); empty: all that a stage keeps.
  std::vector<std::string> offload_modules;
  /// Later ranks keep some of these inputs on their devices, so that copies say how much moves.
  bool offload_differs_by_rank = false;
  /// The sequences of micro-batches that differ: [micro-batch * replicas + replica], through the iterations, and then
  /// again from the first. Empty: samples are whole.
  std::vector<std::vector<Sequence>> packs;
  int tokens_of_sample = 1;
  int iteration_packs = 1;

  /// Empty where samples are whole.
  std::span<const Sequence> pack(int micro_batch, int replica) const;
  /// Tokens of all packs of its iteration.
  double tokens_of_iteration(int micro_batch) const;
  /// Rows of a tensor in a micro-batch of a replica, of `samples` where they are whole.
  std::int64_t rows_of(std::int64_t rows_of_sample, std::int64_t samples, int micro_batch, int replica) const;
};

/// Takes over the packs; replicas of all stages have the same.
void set_packs(Workload&, const PackedBatches&, int tokens_of_sample);

Workload make_workload(const ModelGraph&, const Plan&, const WeightsRule&, const Training&);
/// All layers of all stages as one stage on one device, such as for an evaluation.
Workload as_one_stage(const Workload&);

/// The receivers, on the device itself, of an op's output or input gradient.
std::vector<Handover> handovers(const Workload&, StageId, int micro_batch, int replica, TensorRole);

}  // namespace stagecraft
