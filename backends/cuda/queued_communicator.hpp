#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/cuda/cooperative_threads.hpp"
#include "backends/cuda/gpu_runtime.hpp"
#include "backends/cuda/ranks/nccl_communicators.hpp"
#include "backends/real/group_communicator.hpp"

namespace stagecraft::cuda {

/// The members of a group, by rank.
struct QueuedGroup {
  std::vector<DeviceId> members;
  std::vector<int> devices;  ///< Virtual devices of this process; -1: the member is in another one.
};

/// Carries arrays between members in different processes; the ends that are here.
using GroupCarrier = std::function<void(const std::vector<MessageEnd>&)>;

/// A group of virtual devices whose work is queued. The last one here that comes to an exchange enqueues it for all
/// that are here: the queue of each waits for the arrays of the others, does its part, and waits for theirs. What a
/// member cannot read comes to its memory first. The host waits for none of it, only for numbers on the host.
std::unique_ptr<real::GroupCommunicator> queued_communicator(GpuRuntime&, CooperativeThreads&, QueuedGroup,
                                                             GroupCarrier carry = {});

}  // namespace stagecraft::cuda
