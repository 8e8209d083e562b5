#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {

std::string why_no_device() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "there is no NVIDIA driver here, so no GPU that could be used";
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return cudaGetErrorString(result);
  return count == 0 ? "no CUDA device" : "";
}

}  // namespace stagecraft::cuda
