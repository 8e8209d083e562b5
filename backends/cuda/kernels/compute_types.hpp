#pragma once

#include <cublasLt.h>

#include <vector>

#include "backends/cuda/kernels/kernels.hpp"

namespace stagecraft::cuda {

/// How products may be computed, the first choice first: all keep the promise of the precision.
inline std::vector<cublasComputeType_t> compute_types(Precision precision, std::size_t width) {
  if (width == sizeof(double)) return {CUBLAS_COMPUTE_64F};
  switch (precision) {
    case Precision::Exact:
      return {CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F};
    case Precision::Tf32:
      return {CUBLAS_COMPUTE_32F_FAST_TF32};
    case Precision::Bf16:
      return {CUBLAS_COMPUTE_32F_FAST_16BF};
  }
  return {CUBLAS_COMPUTE_32F_PEDANTIC};
}

}  // namespace stagecraft::cuda
