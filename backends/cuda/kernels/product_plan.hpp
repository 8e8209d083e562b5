#pragma once

#include <compare>
#include <vector>

#include "backends/cuda/kernels/matmul.hpp"
#include "backends/cuda/libraries.hpp"

// What cuBLASLt is told of a matrix product: layouts, types and epilogues; `matmul` runs it.

namespace stagecraft::cuda {

const CublasLt& lt();
void check_lt(cublasStatus_t status, const char* what);

/// Layout of one factor or of the result, in the column-major terms of cuBLAS.
struct LtMatrix {
  std::int64_t stride = 0, distance = 0;
  std::uint32_t alignment = 0;
  bool transposed = false;
  auto operator<=>(const LtMatrix&) const = default;
};

/// What an algorithm is chosen for.
struct Products::Key {
  std::int64_t rows, columns, inner, count;
  LtMatrix left, right, result;
  Epilogue epilogue;
  bool is_wide;
  std::uint32_t vector_alignment = 0;  ///< Alignment of a bias or of sums; 0: neither.
  std::uint32_t gelu_alignment = 0;  ///< Alignment of the input of a GELU, which has `rows` numbers a column; 0: none.
  auto operator<=>(const Key&) const = default;
};

struct Products::Plan {
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();

  cublasLtMatmulDesc_t description{};
  cublasLtMatrixLayout_t left{}, right{}, result{};
  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;
  };
  std::vector<Algorithm> algorithms;  ///< What cuBLASLt names, the best by its heuristic first.
  int chosen = -1;                    ///< -1: not yet.
  const Key* shape = nullptr;

  void set_vector(const void*);
  void set_gelu(const void* before);
  static cublasLtEpilogue_t epilogue_of(const Key&);
  void describe(const Key&, cublasComputeType_t, int multiprocessors, std::size_t width);
  /// CUBLAS_STATUS_SUCCESS when there is an algorithm.
  cublasStatus_t choose(const Key&, cublasLtHandle_t);
};

}  // namespace stagecraft::cuda
