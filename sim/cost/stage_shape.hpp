#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/parallel.hpp"

namespace stagecraft {

/// What a stage does not keep from its forward to its backward: nothing; the inside of each attention (scores, softmax,
/// context; Korthikanti et al., MLSys 2023); everything but its input, so that its whole forward runs once more before
/// the backward; or everything but the inputs of its layers, each of which repeats its forward inside its backward, as
/// Megatron-LM and PyTorch do; or half of what a layer keeps in addition to its input, which repeats half of each
/// kernel and no collective, as torchtitan's choice by operation does, which keeps every second product; or the outputs
/// of norms, activations and up-projections (sim/model/recomputed_outputs.hpp), as DeepSeek-V3 does.
enum class Recomputation : std::uint8_t { None, Selective, Full, Layers, Half, Outputs };
std::string_view to_text(Recomputation);
std::optional<Recomputation> parse_recomputation(std::string_view word);  ///< Nothing for "auto".

/// What a stage computes and how it is divided, without its devices. Planners and searches price shapes; a Stage is a
/// shape on a mesh.
struct StageShape {
  std::vector<LayerId> layers = {};  ///< Empty in plans made without a model.
  Degrees degrees = {};
  StateSharding sharding = StateSharding::None;
  bool reshard = false;  ///< Sharding of weights: each pass of a layer gathers them, and they are dropped after it.
                         ///< Otherwise they are gathered once for an iteration.
  int shard_within = 0;  ///< Devices that divide a state among them; groups of them have copies (HSDP). 0: all that
                         ///< have the same part of the dense parameters.
  ContextExchange exchange = ContextExchange::Ring;
  ExpertDispatch dispatcher = ExpertDispatch::AllToAll;
  bool overlaps_shared = false;  ///< Shared experts run next to the exchanges of the others.
  Recomputation recomputation = Recomputation::None;
  /// Layers of which each of `vocabulary_ranks` pipeline ranks has a part, as a tensor group divides words: embedding,
  /// scores and loss. They are in `layers` of no stage.
  std::vector<LayerId> vocabulary = {};
  int vocabulary_ranks = 1;

  /// Groups with a copy of the divided state each; for experts too, as in Megatron-LM and PyTorch.
  int shard_copies() const {
    return shard_within > 0 ? std::max(1, degrees.replicas * degrees.context / shard_within) : 1;
  }
  /// Devices that divide a state of dense parameters, and of experts.
  int shards() const {
    return sharding == StateSharding::None ? 1 : degrees.replicas * degrees.context / shard_copies();
  }
  int expert_shards() const { return sharding == StateSharding::None ? 1 : degrees.expert_replicas() / shard_copies(); }
  /// Whether each pass of a layer gathers its weights, and whether each backward sums its gradients.
  bool gathers_each_pass() const { return sharding == StateSharding::Weights && reshard; }
  bool sums_each_pass() const { return gathers_each_pass() || sharding == StateSharding::Gradients; }
  bool recomputes_all() const { return recomputation == Recomputation::Full; }
  bool recomputes_layers() const { return recomputation == Recomputation::Layers; }
  bool recomputes_half() const { return recomputation == Recomputation::Half; }
  bool recomputes_outputs() const { return recomputation == Recomputation::Outputs; }
  bool recomputes_attention() const { return recomputation == Recomputation::Selective; }
};

/// The layers of the vocabulary as a tensor group of all ranks divides them.
StageShape vocabulary_shape(const StageShape& stage);

}  // namespace stagecraft
