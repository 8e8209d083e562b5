// Loads cuBLASLt, cuDNN and NCCL when they are needed, and makes and awaits communicators of NCCL.

#include "backends/cuda/libraries.hpp"

#include <dlfcn.h>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {
namespace {

std::vector<std::string> places_of(const std::string& name) {
  std::vector<std::string> places;
  if (const char* folders = std::getenv("STAGECRAFT_CUDA_LIBRARIES")) {
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');) places.push_back(folder + "/" + name);
  }
  places.push_back(name);
  places.push_back("/usr/local/cuda/lib64/" + name);
  return places;
}

}  // namespace

Library::Library(const char* name) {
  std::string tried;
  for (const std::string& place : places_of(name)) {
    handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    where_ = place;
    if (handle_) return;
    tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw CudaError(std::string(name) + " is not there: " + tried);
}

void* Library::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (!address) throw CudaError(where_ + " has no " + name);
  return address;
}

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

void begin_rank(const Nccl& nccl, int gpu, const ncclUniqueId& id, int rank, int ranks, int max_ctas,
                ncclComm_t& communicator) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = max_ctas;  // A power of two, or it becomes one.
  config.cgaClusterSize = 0;
  check(cudaSetDevice(gpu), "cudaSetDevice");
  require(nccl, nccl.ncclCommInitRankConfig(&communicator, ranks, id, rank, &config), "ncclCommInitRankConfig");
}

void wait_for(const Nccl& nccl, ncclComm_t communicator, const WaitPolicy& until) {
  ncclResult_t state = ncclInProgress;
  const auto through = [&] {
    require(nccl, nccl.ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError");
    return state != ncclInProgress;
  };
  if (!through()) until(through);
  require(nccl, state, "NCCL");
}

}  // namespace stagecraft::cuda
