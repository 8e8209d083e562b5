#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// A preset is a device type with a file in topologies/devices; an Accelerator is what the file says. These are the
/// names of all presets.
std::vector<std::string> device_preset_names();
/// Reads the file of one. Nothing where there is none; InputError where the file is wrong.
std::optional<Accelerator> find_device_preset(const std::string& name);
/// Reads the file that an option or a row means by a name or path. InputError also where its file has no numbers for
/// kernels.
Accelerator accelerator_named(const std::string& name);

/// Multiprocessors of each of `parts` equal parts of a GPU with `total`, which are given away in groups.
constexpr int multiprocessors_of_part(int total, int group, int parts) {
  return parts == 1 ? total : total / group / parts * group;
}

}  // namespace stagecraft
