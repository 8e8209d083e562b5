#pragma once

#include <functional>

#include "backends/cuda/libraries.hpp"
#include "backends/cuda/patience.hpp"

/// Calls of NCCL that never wait inside of it: what hangs there hangs for ever.
namespace stagecraft::cuda {

/// CudaError with what NCCL says. What still goes on has not failed.
void require(const Nccl&, ncclResult_t, const char* what);

/// In one group. One that stays open keeps every later call from starting, also ncclCommAbort.
void group(const Nccl&, const std::function<void()>& calls);

/// Begins to make a rank on the GPU, all ranks of a process in one group; made it is behind wait_for().
void begin_rank(const Nccl&, int gpu, const ncclUniqueId&, int rank, int ranks, ncclComm_t&);

/// Until the host is through with what the communicator was told.
void wait_for(const Nccl&, ncclComm_t, const Until&);

}  // namespace stagecraft::cuda
