#pragma once

#include <functional>

#include "backends/box/network.hpp"
#include "sim/cluster/conditions.hpp"

namespace stagecraft::box {

/// Calls `apply` for each link of a network whose condition changes, at the moments that the changes of its cluster
/// say, counted from when `begin` can be read, until `stop` can be.
void apply_link_changes(const Network&, int begin, int stop,
                        const std::function<void(LinkId, const Condition&)>& apply);

}  // namespace stagecraft::box
