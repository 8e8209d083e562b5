#pragma once

#include <string>

#include "sim/core/parallel.hpp"
#include "sim/cost/layer_kernels.hpp"
#include "sim/cost/pass_time.hpp"

namespace stagecraft {

// A training iteration of a transformer as one formula, to check the simulator. It knows no schedule
// but 1F1B and its interleaved form, and no network but the cards of a node.

/// Multi-head latent attention: ranks of the compressed queries and keys, and widths of a head (DeepSeek-V2, 2024).
struct LatentRanks {
  int query = 0;                      ///< Rank of the queries; 0 where they are not compressed.
  int key = 0;                        ///< Rank of keys and values; 0 for ordinary attention.
  int rope = 0, nope = 0, value = 0;  ///< Numbers of a head of Q and K with and without rotation, and of V.
};

/// Routed and shared experts of a layer.
struct ExpertShape {
  int count = 0, active = 0;  ///< 0: no experts.
  int width = 0, shared = 0;  ///< Inner width of a routed expert, and of all shared experts together.
  int dense_layers = 0;       ///< First layers, which have an ordinary feed-forward instead.
};

struct TransformerShape {
  int layers = 0, hidden = 0, heads = 0, key_value_heads = 0, width = 0;
  int sequence = 0, vocabulary = 0;
  bool gated = false, tied = true;
  int head_width = 0;           ///< Numbers of a head; 0: the width divided by the heads.
  bool query_key_norm = false;  ///< Queries and keys of each head are normalized.
  int window = 0;               ///< Tokens that every second layer looks back on; 0: all layers look at all tokens.
  int next_tokens = 0;          ///< Modules that predict a token after the next, each a layer, a product and a head.
  LatentRanks latent = {};
  ExpertShape experts = {};

  int head() const { return head_width > 0 ? head_width : hidden / heads; }
};

/// What a backward computes once more: nothing; the core of attention; all of the forward but its collectives and half
/// of its kernels, as torchtitan's choice by operation does; or the whole forward with its collectives.
enum class LayerRecomputation : std::uint8_t { None, Selective, Half, Full };

/// One run of training with one division.
struct TrainingRun {
  TransformerShape model = {};
  SoftwareStack software = {};
  NumberFormat format = NumberFormat::Bf16;
  Degrees degrees = {};
  bool sequence_parallel = false;
  StateSharding sharding = StateSharding::None;
  int stages = 1, chunks = 1;
  int micro_batch = 1, micro_batches = 1;  ///< Samples of a micro-batch of one replica, and micro-batches of a replica.
  bool ends_count = false;  ///< The division into stages counts the embedding and the head as a layer each.
  int first_chunk = -1, last_chunk = -1;  ///< Layers of the first and of the last chunk of the whole pipeline, where
                                          ///< a layout gives them; all others have equally many. -1: by a rule.
  ExpertDispatch dispatcher = ExpertDispatch::AllToAll;
  bool whole_graphs = false;  ///< A CUDA graph has the whole iteration, so the host launches no single kernel.
  LayerRecomputation recompute = LayerRecomputation::None;
  Bandwidth card{};  ///< Rate of one network card for each device.

  int devices() const { return stages * degrees.devices(); }
  double global_batch() const { return double(micro_batch) * micro_batches * degrees.replicas; }
};

/// Terms of the formula, all on. A term that is off shows what it is worth.
struct CostTerms {
  bool launches = true;      ///< A pass takes at least its launches.
  bool shapes = true;        ///< Products run in waves of tiles and fill each tile; fused attention has a fixed part.
  bool tensor = true;        ///< Collectives of the tensor group.
  bool memory_bound = true;  ///< Kernels that only move bytes, and the optimizer.
  bool data = true;          ///< Collectives of gradients and of divided weights.
  bool uneven = true;        ///< Stages differ: embedding, head, and layers that do not divide evenly.
  bool messages = true;      ///< Messages between stages.
};

/// One layer and micro-batch on one device.
struct LayerTime {
  TimeByClass forward{}, backward{}, recompute{};  ///< The backward does not contain the recomputation.
  double flops = 0;                                ///< Forward and backward, without recomputation.

  Seconds total() const { return forward.total() + backward.total() + recompute.total(); }
};

struct IterationTime {
  Seconds pipeline;   ///< From the first forward to the last backward.
  Seconds gradients;  ///< Reduction of gradients that the backward does not hide.
  Seconds optimizer;
  LayerTime layer;  ///< The layers that the model has most of.
  TimeByClass head_forward, head_backward;
  Seconds slowest_stage, all_stages;  ///< Forward and backward of one micro-batch: the slowest stage, and the sum.
  Seconds message;                    ///< One message between two stages.
  TimeByClass spent;  ///< Where the time of a device of the slowest stage goes: `data` has the gradients, `messages`
                      ///< what its micro-batches wait for.

  Seconds total() const { return pipeline + gradients + optimizer; }
  /// What a device of the slowest stage waits for others: the bubble.
  Seconds idle() const { return total() - spent.total(); }
};

LayerTime layer_time(const TrainingRun&, const Accelerator&, bool dense, const CostTerms& = {});

/// Layers of each chunk in the order of the model, where a layout gives them; else nothing.
std::vector<int> chunks_of_layout(const TrainingRun&);

/// Layers of each stage, all its chunks together: as many as go on every stage but the last, which has the rest.
std::vector<double> layers_per_stage(const TrainingRun&);

/// Time of an iteration:
///
///     sum of the stages / v + (m - 1/v) slowest stage + 2 (p - 1) messages + exposed messages of m micro-batches
///     + gradients + optimizer
IterationTime iteration_time(const TrainingRun&, const Accelerator&, const CostTerms& = {});

/// Bytes on the fullest device: weights, gradients, optimizer states, activations in flight, logits, and the gradient
/// of the largest matrix in fp32. Without the reserve of the allocator, the context and the buffers of NCCL.
Bytes device_memory(const TrainingRun&);

/// What NCCL keeps on a device for the groups of a run, which nvidia-smi counts and the allocator of a framework does
/// not: 544 MiB for a group of two, 688 MiB for a larger one (measured on four A100 with NVLink, NVIDIA/nccl#964). The
/// groups are the tensor, data and model-parallel group, and one of two for each neighbor in the pipeline.
Bytes communicator_memory(const TrainingRun&);

/// Parameters of one layer: what a tensor group divides, and routed experts.
struct LayerParameters {
  double divided = 0, experts = 0;
};
LayerParameters layer_parameters(const TransformerShape&, bool dense);

/// Floating-point operations of one device in an iteration, recomputation included, with layers and head spread evenly.
Flops iteration_flops(const TrainingRun&, const Accelerator&);

/// The formula that this model has to beat: operations over one rate, and the bubble of a pipeline of equal stages,
/// (1 + (p - 1)/(m v)).
Seconds one_constant_time(const TrainingRun&, const Accelerator&, FlopRate);

}  // namespace stagecraft
