// Deals the devices of a program to processes, in equal blocks of neighbors.

#include "backends/real/device_placement.hpp"

#include <fmt/core.h>

#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

DevicePlacement::DevicePlacement(const Program& program, World world) : world_(world), owner_(program.devices, -1) {
  IdVector<DeviceId, bool> used(owner_.size(), false);
  for (const Instruction& i : program.instructions) used[i.device] = true;
  std::int64_t count = 0;
  for (const bool u : used) count += u;
  if (world.size > 1 && world.size > count)
    throw InputError(
        fmt::format("{} processes were started, but only {} device{} anything to do", world.size, count,
                    count == 1 ? " has" : "s have"),
        count > 1 ? fmt::format("{} processes, or a plan with more devices", count) : "start one process alone");
  std::int64_t next = 0;
  for (const DeviceId d : owner_.ids())
    if (used[d]) owner_[d] = static_cast<int>(next++ * world.size / count);
}

}  // namespace stagecraft::real
