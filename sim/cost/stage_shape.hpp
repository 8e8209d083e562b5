#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/parallel.hpp"

namespace stagecraft {

/// What a stage does not keep from its forward to its backward: nothing; everything but its input, so that its whole
/// forward runs once more before the backward (full); or everything but the inputs of its layers, each of which repeats
/// its forward inside its backward, as Megatron-LM and PyTorch do; or half of what a layer keeps in addition to its
/// input, which repeats half of each kernel and no collective, as torchtitan's choice by operation does, which keeps
/// every second product; or modules of each layer, in any union.
///
/// Modules (recomputed_operations.hpp) have their names from Megatron-LM's --recompute-modules. Selective is the inside
/// of each attention (scores, softmax, context; Korthikanti et al., MLSys 2023). Outputs is what all norms, activations
/// and up-projections make, as in DeepSeek-V3; Norms, ExpertActivations and UpProjections are parts of it. DenseLayers,
/// Experts and SharedExperts run again as a whole, with their collectives.
enum class Recomputation : std::uint16_t {
  None = 0,
  Full = 1 << 0,
  Layers = 1 << 1,
  Half = 1 << 2,
  Outputs = 1 << 3,
  Selective = 1 << 4,
  Norms = 1 << 5,
  ExpertActivations = 1 << 6,
  UpProjections = 1 << 7,
  DenseLayers = 1 << 8,
  Experts = 1 << 9,
  SharedExperts = 1 << 10
};
constexpr Recomputation operator|(Recomputation a, Recomputation b) {
  return static_cast<Recomputation>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr Recomputation operator&(Recomputation a, Recomputation b) {
  return static_cast<Recomputation>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
/// Whether any of these parts is recomputed.
constexpr bool recomputes(Recomputation r, Recomputation parts) { return (r & parts) != Recomputation::None; }
/// Modules that run again as a whole.
inline constexpr Recomputation kWholeModules =
    Recomputation::DenseLayers | Recomputation::Experts | Recomputation::SharedExperts;
/// Modules but for the inside of attention.
inline constexpr Recomputation kModulesOfOperations = Recomputation::Outputs | Recomputation::Norms |
                                                      Recomputation::ExpertActivations | Recomputation::UpProjections |
                                                      kWholeModules;

/// Whether modules of each layer run again.
constexpr bool recomputes_by_modules(Recomputation r) {
  return recomputes(r, Recomputation::Selective | kModulesOfOperations);
}

/// "selective", "outputs", or "[layernorm, moe_act]" for other modules, as a scenario writes it.
std::string to_text(Recomputation);
std::optional<Recomputation> parse_recomputation(std::string_view word);  ///< Nothing for "auto".
/// The modules by the names that Megatron-LM has for them: "core_attn", "layernorm" and so on.
const std::vector<std::string>& recomputation_modules();
/// Nothing for a name that is none.
std::optional<Recomputation> recomputation_module(std::string_view name);

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
  int recomputed_layers = 0;  ///< The number of first layers with attention that run again; 0: all.
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
  bool recomputes_outputs() const { return recomputes(recomputation, Recomputation::Outputs); }
  bool recomputes_attention() const { return recomputes(recomputation, Recomputation::Selective); }
  /// Whether operations of a layer but for the inside of attention run again.
  bool recomputes_operations() const { return recomputes(recomputation, kModulesOfOperations); }

  friend auto operator<=>(const StageShape&, const StageShape&) = default;
};

/// The layers of the vocabulary as a tensor group of all ranks divides them.
StageShape vocabulary_shape(const StageShape& stage);

}  // namespace stagecraft
