// Calls of CUDA that many files here use: whether there is a device, its memory, errors as text, and waits with a time
// limit.

#include "backends/cuda/driver.hpp"

#include <cstdlib>
#include <sstream>

#include "backends/real/clocks.hpp"

namespace stagecraft::cuda {

std::string to_text(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

std::string to_text(CUresult result) try {
  const char *name = nullptr, *words = nullptr;
  driver_function<decltype(&cuGetErrorName)>("cuGetErrorName")(result, &name);
  driver_function<decltype(&cuGetErrorString)>("cuGetErrorString")(result, &words);
  if (!name || !words)
    return "CUresult " + std::to_string(static_cast<int>(result)) + ", which the driver does not know";
  return std::string(words) + " (" + name + ")";
} catch (const CudaError&) {
  return "CUresult " + std::to_string(static_cast<int>(result));
}

void prepare_driver() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

namespace {

/// Drivers that every toolkit of a major version can use: CUDA 12.x and 13.x release notes, "Minimum Required Driver
/// Version for CUDA Minor Version Compatibility".
std::string old_driver(int driver) {
  constexpr int kOldest = CUDART_VERSION >= 13000 ? 580 : 525;
  return "the NVIDIA driver here is for CUDA " + cuda_version(driver) +
         " at most, and this program was built with CUDA " + cuda_version(CUDART_VERSION) + ", which needs driver " +
         std::to_string(kOldest) + " or newer: update the driver" +
         (CUDART_VERSION >= 13000 ? ", or build with a toolkit of CUDA 12, from 12.4 on, for driver 525 or newer" : "");
}

}  // namespace

std::string why_no_device() {
  prepare_driver();
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "there is no NVIDIA driver here, so no GPU that could be used";
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaErrorInsufficientDriver) return old_driver(driver);
  if (result != cudaSuccess) return cudaGetErrorString(result);
  return count == 0 ? "no CUDA device" : "";
}

void* device_memory(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, bytes);
  if (result == cudaSuccess) return data;
  if (result != cudaErrorMemoryAllocation) check(result, "cudaMalloc");
  cudaGetLastError();  // Clears the error, or the next launch would be blamed.
  return nullptr;
}

void* pinned_memory(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t result = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
  if (result == cudaSuccess) return data;
  if (result != cudaErrorMemoryAllocation) check(result, "cudaHostAlloc");
  cudaGetLastError();
  return nullptr;
}

bool reach_memory(int gpu, int other) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, gpu, other), "cudaDeviceCanAccessPeer");
  if (!can) return false;
  check(cudaSetDevice(gpu), "cudaSetDevice");
  const cudaError_t result = cudaDeviceEnablePeerAccess(other, 0);
  cudaGetLastError();
  if (result != cudaErrorPeerAccessAlreadyEnabled) check(result, "cudaDeviceEnablePeerAccess");
  return true;
}

namespace {

/// Does without fmt, because first_run has to work where fmt is not installed.
std::string stuck_for(double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << "the GPU has not ended its work within " << seconds << " s, so it is stuck";
  return text.str();
}

}  // namespace

WaitPolicy at_most(double seconds) {
  return [seconds](const std::function<bool()>& done) {
    real::Nap nap;
    for (const double begin = real::steady_seconds(); !done(); nap())
      if (real::steady_seconds() - begin > seconds) throw BackendError(stuck_for(seconds));
  };
}

bool over(cudaStream_t stream) {
  const cudaError_t result = cudaStreamQuery(stream);
  if (result == cudaErrorNotReady) return false;
  check(result, "waiting for the device");
  return true;
}

bool ended(cudaStream_t stream) noexcept try {
  at_most(10)([&] { return over(stream); });
  return true;
} catch (...) {
  return false;
}

}  // namespace stagecraft::cuda
