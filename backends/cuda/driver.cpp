#include "backends/cuda/driver.hpp"

#include <cstdlib>

namespace stagecraft::cuda {

void prepare_driver() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

std::string why_no_device() {
  prepare_driver();
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "there is no NVIDIA driver here, so no GPU that could be used";
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return cudaGetErrorString(result);
  return count == 0 ? "no CUDA device" : "";
}

}  // namespace stagecraft::cuda
