// Loads cuBLASLt, cuDNN and NCCL when they are needed, and makes and awaits communicators of NCCL.

#include "backends/cuda/libraries.hpp"

#include <dlfcn.h>
#include <cstdlib>
#include <sstream>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {
namespace {

/// Prefixes of the name of a library, in the order of the search; an empty one leaves the search to the loader.
std::vector<std::string> searched_places() {
  std::vector<std::string> places;
  if (const char* folders = std::getenv("STAGECRAFT_CUDA_LIBRARIES")) {
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');) places.push_back(folder + "/");
  }
  places.emplace_back();
  places.emplace_back("/usr/local/cuda/lib64/");
  return places;
}

std::string not_there(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front() + " is not there";
  std::string text = "neither " + names.front();
  for (std::size_t i = 1; i < names.size(); ++i) text += " nor " + names[i];
  return text + " is there";
}

}  // namespace

Library::Library(const std::vector<std::string>& names) {
  std::string tried;
  for (const std::string& place : searched_places())
    for (const std::string& name : names) {
      where_ = place + name;
      handle_ = dlopen(where_.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
    }
  throw CudaError(not_there(names) + ": " + tried);
}

std::vector<std::string> names_by_cuda_version(const std::string& name) {
  constexpr int kNewest = 13000;
  prepare_driver();
  int driver = 0;  // Without a driver it stays zero.
  cudaDriverGetVersion(&driver);
  if (driver > 0 && driver < kNewest) return {name + ".12", name + ".13"};
  return {name + ".13", name + ".12"};
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
