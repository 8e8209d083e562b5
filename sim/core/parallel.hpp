#pragma once

#include <cstdint>

namespace stagecraft {

// Words of parallel training that model, cluster, cost, plan and program share; model and cluster must not include each
// other, so the words stand in core.

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
