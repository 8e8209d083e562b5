#include "backends/cuda/ranks/nccl_calls.hpp"

namespace stagecraft::cuda {

void require(const Nccl& nccl, ncclResult_t result, const char* what) {
  if (result != ncclSuccess && result != ncclInProgress)
    throw CudaError(std::string(what) + ": " + nccl.ncclGetErrorString(result));
}

void group(const Nccl& nccl, const std::function<void()>& calls) {
  require(nccl, nccl.ncclGroupStart(), "ncclGroupStart");
  try {
    calls();
  } catch (...) {
    nccl.ncclGroupEnd();
    throw;
  }
  require(nccl, nccl.ncclGroupEnd(), "ncclGroupEnd");
}

void begin_rank(const Nccl& nccl, int gpu, const ncclUniqueId& id, int rank, int ranks, ncclComm_t& made) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = 4;  // A power of two, or it becomes one.
  config.cgaClusterSize = 0;
  check(cudaSetDevice(gpu), "cudaSetDevice");
  require(nccl, nccl.ncclCommInitRankConfig(&made, ranks, id, rank, &config), "ncclCommInitRankConfig");
}

void wait_for(const Nccl& nccl, ncclComm_t communicator, const Until& until) {
  ncclResult_t state = ncclInProgress;
  const auto through = [&] {
    require(nccl, nccl.ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError");
    return state != ncclInProgress;
  };
  if (!through()) until(through);
  require(nccl, state, "NCCL");
}

}  // namespace stagecraft::cuda
