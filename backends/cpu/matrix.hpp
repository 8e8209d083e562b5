#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

namespace stagecraft::cpu {

/// Row-major numbers that lie elsewhere; `stride` is the distance of rows, where they are part of wider ones.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;

  T* row(std::int64_t r) const { return data + r * stride; }
  operator MatrixView<const T>() const { return {data, rows, columns, stride}; }
};

template <class T>
MatrixView<T> view(T* data, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0) {
  return {data, rows, columns, stride ? stride : columns};
}

/// A matrix that a product only reads.
template <class T>
using Factor = std::type_identity_t<MatrixView<const T>>;

std::string eigen_version();  ///< "Eigen 3.4.0"

// Products by Eigen for float and double: to = product, or to += product with `add`. They are compiled once, since each
// use of Eigen takes seconds to compile.

/// a b
template <class T>
void multiply(bool add, MatrixView<T> to, Factor<T> a, Factor<T> b);
/// a b^T
template <class T>
void multiply_second_transposed(bool add, MatrixView<T> to, Factor<T> a, Factor<T> b);
/// a^T b
template <class T>
void multiply_first_transposed(bool add, MatrixView<T> to, Factor<T> a, Factor<T> b);

}  // namespace stagecraft::cpu
