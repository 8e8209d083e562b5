#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "backends/real/layer_runs.hpp"

namespace stagecraft::real {

using CollectiveKey = std::tuple<CollectiveKind, int, std::int64_t>;  ///< Kind, ranks, numbers of the array.
using CollectiveReadings = std::map<CollectiveKey, std::vector<double>>;

/// What one run of one device of a group showed. The times of layers are without their collectives.
struct GroupReadings {
  LayerReadings layers;
  CollectiveReadings collectives;
};

/// Runs of which means are taken. What delays a device delays its group, so delays add up over an iteration, and the
/// median over single runs would lose the long ones.
inline constexpr int kGroupBlock = 4;

/// Figures of the profile are medians over blocks of runs, of the means over the devices and the equal layers of a
/// block. `of_devices`: the runs of each device, of which all have as many.
void put_group(const ProfileRequest&, int samples, const std::vector<std::vector<GroupReadings>>& of_devices, Profile&);

}  // namespace stagecraft::real
