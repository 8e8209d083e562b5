#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/gpu_runtime.hpp"
#include "backends/cuda/member_threads.hpp"
#include "backends/real/group_communicator.hpp"

namespace stagecraft::cuda {

/// A group of virtual devices whose work is queued. The last one that comes to an exchange enqueues it for all: the
/// queue of each member waits for the arrays of the others, does its part, and waits for theirs. The host waits for
/// none of it. BackendError when a GPU cannot reach the memory of another one.
std::unique_ptr<real::GroupCommunicator> queued_communicator(GpuRuntime&, MemberThreads&, std::vector<int> devices);

}  // namespace stagecraft::cuda
