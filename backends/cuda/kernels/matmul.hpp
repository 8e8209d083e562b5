#pragma once

#include <cublasLt.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/memory.hpp"

namespace stagecraft::cuda {

/// How products may be computed, the first choice first: all keep the promise of the precision.
inline std::vector<cublasComputeType_t> compute_types(Precision precision, std::size_t width) {
  if (width == sizeof(double)) return {CUBLAS_COMPUTE_64F};
  if (width == real::kMixedWidth) return {CUBLAS_COMPUTE_32F};  // Factors of 16 bits, sums of 32.
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

/// Row-major matrices at equal distances, in memory whose `base` is at a multiple of 64 bytes, or in mixed precision of
/// 32 bytes. Offset, stride and
/// distance count numbers, not bytes.
struct Matrices {
  const void* base = nullptr;
  std::int64_t offset = 0;    ///< From `base` to the first number of the first matrix.
  std::int64_t stride = 0;    ///< From a row to the next.
  std::int64_t distance = 0;  ///< From a matrix to the next.
  bool transposed = false;    ///< The factor is the transpose of what lies there.
  bool is_wide = false;       ///< A result of 32 bits of factors of 16 bits.
};

/// `count` products of an m x k by a k x n matrix.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0, count = 1;
};

/// Matrix products of one stream of the current device, all by cuBLASLt. The algorithm of a shape is chosen once in a
/// process, for a number of multiprocessors, and never splits a sum, so equal calls give equal bits. In exact precision
/// and for doubles it is the first that cuBLASLt names, so all processes choose alike; else the first call of the shape
/// times eight, and takes another than the first if it is faster by a margin; or it is what the file of ProductChoices
/// says. While work is captured nothing can be timed, and the first is taken.
class Products {
 public:
  Products(const KernelTarget&, std::size_t width, Memory& workspaces);
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products();

  /// c = a b, or c += a b. `c` is not transposed.
  void multiply(const ProductShape&, const Matrices& a, const Matrices& b, const Matrices& c, bool add);
  /// c = a b, with a bias added to each row before the result is rounded. False where cuBLASLt has no such algorithm,
  /// and in exact precision, whose kernels are the reference; then nothing was done.
  bool multiply_with_bias(const ProductShape&, const Matrices& a, const Matrices& b, const Matrices& c,
                          const void* bias);
  /// c += a b, and sums[row] = the sum of the numbers of this row of `a`, which are wide. False as above.
  bool multiply_with_row_sums(const ProductShape&, const Matrices& a, const Matrices& b, const Matrices& c, void* sums);

  /// c = GELU(x) by its tanh formula, where x = a b with the bias added to each row is written to `before`, which has
  /// the layout of c without gaps. False as above, and where rows of c are not a multiple of eight numbers.
  bool multiply_with_gelu(const ProductShape&, const Matrices& a, const Matrices& b, const Matrices& c,
                          const void* bias, void* before);
  /// c = a b times the slopes of the GELU at `before`. False as above.
  bool multiply_with_gelu_slope(const ProductShape&, const Matrices& a, const Matrices& b, const Matrices& c,
                                const void* before);
  /// Whether products are anything but the reference.
  bool may_fuse() const { return !is_exact() && width_ != sizeof(double); }

 private:
  enum class Epilogue : std::uint8_t { None, Add, Bias, RowSums, Gelu, GeluSlope };
  struct Plan;
  struct Key;
  Plan* find_plan(const Key&, cublasStatus_t& answer);
  Plan& plan(const Key&);
  bool is_exact() const { return place_.precision == Precision::Exact && width_ != real::kMixedWidth; }
  Plan* plan_with_vector(Key, const void* vector, const void* before = nullptr);
  int choice(const Plan&, const Matrices& a, const Matrices& b, const Matrices& c, bool add);
  std::string text_of(const Key&) const;
  double warm_up(const std::function<void(int algorithm)>& enqueue_product);
  int fastest(const Plan&, const Matrices& a, const Matrices& b, const Matrices& c, bool add);
  void enqueue(const Plan&, int algorithm, const Matrices& a, const Matrices& b, void* to, bool add);
  Key key_of(const ProductShape&, const Matrices& a, const Matrices& b, const Matrices& c, Epilogue) const;
  void run(Plan&, const Matrices& a, const Matrices& b, const Matrices& c, bool add);

  KernelTarget place_;
  std::size_t width_;
  Memory* workspaces_;
  cublasLtHandle_t handle_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace stagecraft::cuda
