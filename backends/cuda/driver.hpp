#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <functional>
#include <string>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

struct CudaError : BackendError {
  using BackendError::BackendError;
};

/// "out of memory (cudaErrorMemoryAllocation)".
std::string to_text(cudaError_t);
std::string to_text(CUresult);

inline void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) throw CudaError(std::string(what) + ": " + to_text(result));
}

inline void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw CudaError(std::string(what) + ": " + to_text(result));
}

/// One hardware queue a stream as far as there are any: fewer can make partitions wait for each other. The driver reads
/// its environment when it starts, so this comes before the first call.
void prepare_driver();

/// "13.0" of 13000.
std::string cuda_version(int version);

/// Empty when there is a device that can be used; else why not.
std::string why_no_device();

/// Lets the GPU read and write the memory of the other from now on; false: it cannot.
bool reach_memory(int gpu, int other);

/// Memory of the current GPU; null if it has no more. Any other failure is a CudaError: an error of earlier work, too,
/// shows in whichever call comes next, and is no lack of memory.
void* device_memory(std::size_t bytes);
/// Memory of the host that copies of a GPU may use while it computes; null if no more can be pinned.
void* pinned_memory(std::size_t bytes);

/// The version of the driver's functions that is asked for. A build with CUDA 13 has only drivers that know it. A build
/// with CUDA 12 starts with drivers from 525 on (CUDA 12.0); parts of a GPU are functions of CUDA 12.4 and need its
/// driver.
constexpr unsigned kDriverFunctions = CUDART_VERSION >= 13000 ? 13000 : 12040;

/// A function of the driver by its name: libcuda is not linked, so a program starts on machines without it.
template <class Function>
Function driver_function(const char* name, [[maybe_unused]] unsigned version = kDriverFunctions) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult answer{};
#if CUDART_VERSION >= 12050
  const cudaError_t result = cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &answer);
#else  // The toolkit's own version.
  const cudaError_t result = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &answer);
#endif
  if (result != cudaSuccess || answer != cudaDriverEntryPointSuccess)
    throw CudaError(std::string("the driver has no ") + name);
  return reinterpret_cast<Function>(address);
}

/// How the host waits for the device. It polls, because a blocking driver call never returns from a stuck device.
using WaitPolicy = std::function<void(const std::function<bool()>& done)>;

/// Throws BackendError after this many seconds.
WaitPolicy at_most(double seconds);
/// Whether all that was enqueued is over.
bool over(cudaStream_t);
/// Waits for some seconds until it is; false: it is stuck, or broken.
bool ended(cudaStream_t) noexcept;

}  // namespace stagecraft::cuda
