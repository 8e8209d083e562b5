#pragma once

#include <cstdint>

#include <Eigen/Core>

namespace stagecraft::cpu {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using View = Eigen::Map<RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using ConstView = Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// `stride` is the distance of rows, where they are part of wider ones.
template <class T>
View<T> view(T* data, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0) {
  return {data, rows, columns, Eigen::OuterStride<>(stride ? stride : columns)};
}
template <class T>
ConstView<T> const_view(const T* data, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0) {
  return {data, rows, columns, Eigen::OuterStride<>(stride ? stride : columns)};
}

/// to = product, or to += product.
template <class T, class Product>
void put(bool add, View<T> to, const Product& product) {
  if (add)
    to.noalias() += product;
  else
    to.noalias() = product;
}

}  // namespace stagecraft::cpu
