#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "backends/real/layer_runs.hpp"

namespace stagecraft::real {

/// Use, kind, ranks, numbers of the array.
using CollectiveKey = std::tuple<CollectiveUse, CollectiveKind, int, std::int64_t>;
using CollectiveReadings = std::map<CollectiveKey, std::vector<double>>;

/// What one run of one device of a group showed. The times of layers are without their collectives.
struct GroupReadings {
  LayerReadings layers;
  CollectiveReadings collectives;
};

/// A collective inside of a pass of an operation.
struct InnerCollective {
  CollectiveUse use = CollectiveUse::Ops;
  CollectiveKind kind = CollectiveKind::AllReduce;
  int ranks = 2;
  std::int64_t numbers = 0;
  LayerPass part = LayerPass::Forward;
  std::size_t node = 0;
  double seconds = 0;
};

/// Takes collectives out of the times of the operations that they are in. The gradients of weights contain what their
/// tensor group sums. What a pass of a layer exchanges of gradients or weights, one operation after another, is one
/// reading, as it is one collective for simulators.
GroupReadings readings_of(const LayerRuns&, NodeTimes, std::span<const InnerCollective>);

/// Runs of which means are taken. What delays a device delays its group, so delays add up over an iteration, and the
/// median over single runs would lose the long ones.
inline constexpr int kGroupBlock = 4;

/// Figures of the profile are medians over blocks of runs, of the means over the devices and the equal layers of a
/// block. `of_devices`: the runs of each device, of which all have as many.
void put_group(const ProfileRequest&, int samples, const std::vector<std::vector<GroupReadings>>& of_devices, Profile&);

}  // namespace stagecraft::real
