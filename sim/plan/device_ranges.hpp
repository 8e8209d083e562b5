#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// "node0.gpu[0-3]" stands for four devices, "[3-0]" for the same in the opposite order, and "node[0-1].gpu[0-3]" for
/// eight, one node after the other. Any other text is one name.
std::vector<std::string> expand_device_range(std::string_view text);

/// The names of devices in this order, with ranges for three and more that are numbered one after the other, and for
/// three and more such ranges: "pod[0-31].node[0-7].gpu[0-7]".
std::vector<std::string> device_ranges(const std::vector<DeviceId>&, const Cluster&);

}  // namespace stagecraft
