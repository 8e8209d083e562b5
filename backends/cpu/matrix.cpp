// Matrix products by Eigen, compiled here once for floats and doubles; kernels call them.

#include "backends/cpu/matrix.hpp"

#include <fmt/core.h>
#include <Eigen/Core>

namespace stagecraft::cpu {
namespace {

template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<Dense<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using ConstMap = Eigen::Map<const Dense<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T>
ConstMap<T> map(Factor<T> m) {
  return {m.data, m.rows, m.columns, Eigen::OuterStride<>(m.stride)};
}

template <class T, class Product>
void put(bool add, MatrixView<T> to, const Product& product) {
  Map<T> result{to.data, to.rows, to.columns, Eigen::OuterStride<>(to.stride)};
  if (add)
    result.noalias() += product;
  else
    result.noalias() = product;
}

}  // namespace

std::string eigen_version() {
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
}

template <class T>
void multiply(bool add, MatrixView<T> to, Factor<T> a, Factor<T> b) {
  put(add, to, map<T>(a) * map<T>(b));
}

template <class T>
void multiply_second_transposed(bool add, MatrixView<T> to, Factor<T> a, Factor<T> b) {
  put(add, to, map<T>(a) * map<T>(b).transpose());
}

template <class T>
void multiply_first_transposed(bool add, MatrixView<T> to, Factor<T> a, Factor<T> b) {
  put(add, to, map<T>(a).transpose() * map<T>(b));
}

template void multiply<float>(bool, MatrixView<float>, Factor<float>, Factor<float>);
template void multiply<double>(bool, MatrixView<double>, Factor<double>, Factor<double>);
template void multiply_second_transposed<float>(bool, MatrixView<float>, Factor<float>, Factor<float>);
template void multiply_second_transposed<double>(bool, MatrixView<double>, Factor<double>, Factor<double>);
template void multiply_first_transposed<float>(bool, MatrixView<float>, Factor<float>, Factor<float>);
template void multiply_first_transposed<double>(bool, MatrixView<double>, Factor<double>, Factor<double>);

}  // namespace stagecraft::cpu
