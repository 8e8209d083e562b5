#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft {

/// A group among several that run a collective at the same time. Each has its own shape.
struct CollectiveGroup {
  std::vector<DeviceId> devices;
  std::int32_t shape = -1;  ///< Index into collective_shapes of the program that got the shape.
};

/// The groups among `devices` that the routes of a collective of `from` connect, each with its part of the phases as a
/// new shape of `to`.
std::vector<CollectiveGroup> split_by_groups(const Program& from, const CollectiveCall&,
                                             const std::vector<DeviceId>& devices, Program& to);

}  // namespace stagecraft
