#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/enum_array.hpp"

namespace stagecraft {

/// What the rank of a device counts: the axes of a mesh, and the ranks of the pipeline. Experts number the devices of a
/// stage again, where Tensor is their expert-tensor axis and Data their replicas.
enum class RankAxis : std::uint8_t { Tensor, Context, Expert, Data, Pipeline };

using RankSizes = EnumArray<RankAxis, int, 5>;

/// The order in which the ranks of a cluster are numbered: between neighbors the first axis differs (Megatron-LM's
/// RankGenerator).
struct RankOrder {
  std::array<RankAxis, 5> axes = {RankAxis::Tensor, RankAxis::Context, RankAxis::Expert, RankAxis::Data,
                                  RankAxis::Pipeline};
  int written = 5;  ///< Axes after these were left out, which is allowed where they have one rank.

  /// Distance between neighbors on an axis: the product of the sizes of the axes before it.
  int stride(RankAxis axis, const RankSizes& sizes) const {
    int stride = 1;
    for (const RankAxis before : axes) {
      if (before == axis) break;
      stride *= sizes[before];
    }
    return stride;
  }

  friend auto operator<=>(const RankOrder&, const RankOrder&) = default;
};

/// "tp-cp-ep-dp-pp", as Megatron-LM writes it; axes that were left out come last.
std::string to_text(const RankOrder&);
/// Nothing where a word is unknown or comes twice.
std::optional<RankOrder> parse_rank_order(std::string_view text);
/// "tp".
std::string_view to_text(RankAxis);

// Words of parallel training that model, cluster, cost, plan and program share; model and cluster must not include each
// other, so the words stand in core.

/// An axis of the mesh of devices of a stage. Pipeline parallelism is the graph of stages, not an axis.
enum class Axis : std::uint8_t { Data, Context, Expert, Tensor };

inline constexpr Axis kMeshAxes[] = {Axis::Data, Axis::Context, Axis::Expert, Axis::Tensor};

/// A set of axes: gradients of dense layers are summed over {Data, Context}.
class AxisSet {
 public:
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) bits_ |= bit(axis);
  }
  constexpr bool contains(Axis axis) const { return (bits_ & bit(axis)) != 0; }
  friend constexpr bool operator==(AxisSet, AxisSet) = default;

 private:
  static constexpr unsigned bit(Axis axis) { return 1u << static_cast<unsigned>(axis); }
  unsigned bits_ = 0;
};

/// Into how many parts a stage is divided. Dense layers (everything but routed experts) run on a mesh of
/// replicas x context x tensor devices. Experts run on a mesh of the same devices, in which expert x expert_tensor
/// devices hold one copy of all experts (Megatron-LM's parallel folding).
struct Degrees {
  int replicas = 1;  ///< Megatron-LM's data-parallel size of dense layers.
  int context = 1, tensor = 1, expert = 1, expert_tensor = 1;
  bool sequence = false;  ///< What the tensor group does not divide is divided by rows (sequence parallelism).
  RankOrder order = {};   ///< How the devices of all stages are numbered.
  int pipeline = 1;       ///< Pipeline ranks that are numbered with them; 1 where each stage lists its devices.

  int devices() const { return replicas * context * tensor; }
  /// Devices that compute each replica together.
  int group() const { return context * tensor; }
  bool divides() const { return group() > 1 || expert > 1 || expert_tensor > 1; }
  int expert_replicas() const { return devices() / (expert * expert_tensor); }
  /// Sizes of the axes in the numbering of ranks, of dense layers and of experts.
  RankSizes dense_sizes() const { return {tensor, context, 1, replicas, pipeline}; }
  RankSizes expert_sizes() const { return {expert_tensor, 1, expert, expert_replicas(), pipeline}; }
  friend auto operator<=>(const Degrees&, const Degrees&) = default;
};

/// What the data-parallel devices of a stage divide among them instead of each keeping all of it: nothing; the states
/// of the optimizer; gradients too; or weights too (ZeRO 1 to 3).
enum class StateSharding : std::uint8_t { None, Optimizer, Gradients, Weights };

/// How the devices of a context group get the keys and values that they do not have: one part after another in a ring,
/// next to the attention on the part before it; all at once; or by exchanging rows for heads (DeepSpeed-Ulysses).
enum class ContextExchange : std::uint8_t { Ring, AllGather, AllToAll };

/// How rows reach the devices of their experts: a copy for each expert; one for each node, which spreads it over its
/// devices (DeepEP); or all rows of the group on each of its devices, which takes what its experts need.
enum class ExpertDispatch : std::uint8_t { AllToAll, PerNode, AllGather };

/// What a group of devices does with its arrays together, as in NCCL and MPI. The first device of a group is the root
/// of a broadcast.
enum class CollectiveKind : std::uint8_t { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast };

inline constexpr CollectiveKind kCollectiveKinds[] = {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
                                                      CollectiveKind::AllGather, CollectiveKind::AllToAll,
                                                      CollectiveKind::Broadcast};

/// "all_reduce", as reports and files write it.
constexpr const char* name(CollectiveKind kind) {
  constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace stagecraft
