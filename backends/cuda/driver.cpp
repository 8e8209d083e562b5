#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {

std::string why_no_device() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return cudaGetErrorString(result);
  return count == 0 ? "no CUDA device" : "";
}

}  // namespace stagecraft::cuda
