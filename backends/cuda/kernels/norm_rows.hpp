#pragma once

#include <algorithm>
#include <initializer_list>

#include "backends/cuda/kernels/rows.hpp"

/// What norms of rows share: a warp computes a row.
namespace stagecraft::cuda {

constexpr double kNormEpsilon = 1e-5;  ///< Added to the variance, or to the mean square.

/// What the rows of a norm keep: the normalized row, and the factor that normalizes it. A sample keeps all its rows of
/// the first, then the second.
template <class T>
struct SavedNorm {
  T* saved;
  int rows, columns;  ///< Shape of one sample.
  __device__ T* sample(int row) const {
    return saved + static_cast<std::int64_t>(row / rows) * (static_cast<std::int64_t>(rows) * columns + rows);
  }
  __device__ T* normal(int row) const { return sample(row) + static_cast<std::int64_t>(row % rows) * columns; }
  __device__ T* inverse(int row) const { return sample(row) + static_cast<std::int64_t>(rows) * columns + row % rows; }
};

template <class T>
SavedNorm<Wide<T>> saved_norm(const real::Call& call) {
  return {numbers<Wide<T>>(call.saved), call.operation->rows, call.operation->columns};
}

/// The row of a warp. Warps beyond the last row compute it, too, because all threads of a block exchange numbers, but
/// write nothing.
struct WarpRow {
  int row, columns;
  bool writes;
  __device__ WarpRow(int rows, int row_columns) : columns(row_columns) {
    const int mine = static_cast<int>(blockIdx.x * kWarps + threadIdx.y);
    writes = mine < rows;
    row = writes ? mine : rows - 1;
  }
  /// step(i) for every kCount-th number i of the row that is the lane's.
  template <int kCount, class Step>
  __device__ void each(const Step& step) const {
    for (int i = static_cast<int>(threadIdx.x) * kCount; i < columns; i += static_cast<int>(kLanes) * kCount) step(i);
  }
};

/// Whether 16 bytes can be read at once everywhere: at these addresses, in all rows and all samples.
template <class T>
bool is_packed(const real::Call& call, std::initializer_list<const void*> addresses) {
  const std::int64_t rows = call.operation->rows, columns = call.operation->columns;
  const std::int64_t sample_bytes = (rows * columns + rows) * static_cast<std::int64_t>(sizeof(Wide<T>));
  return columns % kPacked<T> == 0 && sample_bytes % 16 == 0 &&
         std::all_of(addresses.begin(), addresses.end(), is_aligned);
}

template <class... Parameters, class... Arguments>
void launch_rows(const Device& device, std::int64_t rows, void (*kernel)(int, Parameters...),
                 const Arguments&... arguments) {
  if (rows == 0) return;
  launch(kernel, dim3(static_cast<unsigned>((rows + kWarps - 1) / kWarps)), dim3(kLanes, kWarps), 0, device.stream,
         static_cast<int>(rows), arguments...);
}

}  // namespace stagecraft::cuda
