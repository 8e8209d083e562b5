#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// A device type that people can name.
struct DevicePreset {
  DeviceType type;
  std::string_view source;  ///< Where the figures come from, and the arithmetic that `peak` counts.
};

std::span<const DevicePreset> device_presets();
const DevicePreset* find_device_preset(std::string_view name);
std::vector<std::string> device_preset_names();

/// Multiprocessors of each of `parts` equal parts of a GPU with `total`, which are given away in groups.
constexpr int multiprocessors_of_part(int total, int group, int parts) {
  return parts == 1 ? total : total / group / parts * group;
}

}  // namespace stagecraft
