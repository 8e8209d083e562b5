#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// The device types that a cluster can name: those with a file in topologies/devices.
std::vector<std::string> device_preset_names();
/// Reads the file of one. Nothing where there is none; InputError where the file is wrong.
std::optional<Accelerator> find_device_preset(const std::string& name);
/// Reads the file that an option or a row means by a name or path. InputError also where it has no figures of kernels.
Accelerator accelerator_named(const std::string& name);

/// The figures for clusters, and for costs without a software stack.
DeviceType device_type_of(const Accelerator&);

/// Multiprocessors of each of `parts` equal parts of a GPU with `total`, which are given away in groups.
constexpr int multiprocessors_of_part(int total, int group, int parts) {
  return parts == 1 ? total : total / group / parts * group;
}

}  // namespace stagecraft
