#pragma once

#include <functional>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// The promises of Program, checked apart from the code that made them: numbers, pairs, streams, buffers.
/// Throws InternalError for the first broken one. O(instructions).
void check_program(const Program&);

/// The most memory of a device at one time, and the instruction at which it needs that.
struct MemoryNeed {
  Bytes total;
  InstructionId at;
};

/// Peak memory of every device, as check_memory() computes it.
IdVector<DeviceId, MemoryNeed> memory_peaks(const Program&);
IdVector<DeviceId, Bytes> memory_needs(const Program&);

/// Throws Infeasible "memory" when the stash, one received buffer and the resident memory already exceed a device:
/// names the device, the op where it overflows, and by how much. Which order the network gives does not matter.
/// `about_device` gives words about a device that follow its name, such as " (stage 3)".
void check_memory(const Program&, const Cluster&, const std::function<std::string(DeviceId)>& about_device = {});
/// With peaks of another origin, such as a timeline.
void check_memory(const Program&, const Cluster&, const IdVector<DeviceId, MemoryNeed>& peaks,
                  const std::function<std::string(DeviceId)>& about_device);

}  // namespace stagecraft
