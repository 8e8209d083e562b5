#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/planners/chain_partition/cuts.hpp"
#include "sim/planners/shared/device_mix.hpp"

// PipeDream's problem on devices of several types: any devices may form a stage, which is as slow as its slowest
// replica.

namespace stagecraft::chain_partition {

struct MixedStage {
  int from = 0, to = 0;  ///< Cuts.
  DeviceMix mix;
};

using MixedPipeline = ChainPipeline<MixedStage>;

/// How the answer of a search that was not exhaustive is described.
constexpr const char* kLineOfDevices = "stages take neighbors in a line of devices sorted by type";

/// Seconds of the layers between two cuts as a stage on these devices when stages on `devices_after` devices follow it;
/// infinite where it cannot be.
using StageSeconds = std::function<double(int from, int to, const DeviceMix&, int devices_after)>;

/// The stages with the least time of the slowest, over all divisions and all choices of devices of several types;
/// nothing when no division is possible. A stage takes at most `max_replicas` devices. With L(c, n) the least time for
/// the layers after cut c on n devices of each type:
///
///   L(c, n) = min over cuts c' after c and mixes t within n of max(L(c', n - t), seconds(c, c', t, |n - t|))
///
/// Where there are too many mixes, the devices stand in a line, type by type, and n is a number of devices at its end.
/// Both directions of the line are tried.
std::optional<MixedPipeline> search_mixed(const Cuts&, const std::vector<int>& counts, int max_replicas, bool all_used,
                                          const StageSeconds&);

}  // namespace stagecraft::chain_partition
