#pragma once

#include <optional>
#include <type_traits>

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/matmul.hpp"

namespace stagecraft::cuda {

/// The products of all heads of a sample. Heads of Q that share a head of K and V take turns: there is one call for the
/// first of each group that shares, one for the second, and so on, because all matrices of a call are equally far
/// apart.
class HeadProducts {
 public:
  HeadProducts(const Device& device, const Operation& op, std::int64_t queries, std::int64_t keys)
      : products_(device.products),
        key_heads_(head_shape(op).key_value_heads),
        sharing_(op.heads / key_heads_),
        queries_(queries),
        keys_(keys),
        width_(op.columns / op.heads) {}

  std::int64_t keys() const { return keys_; }
  std::int64_t width() const { return width_; }
  std::int64_t key_columns() const { return key_heads_ * width_; }  ///< All heads of K, or of V.
  bool shares_keys() const { return sharing_ > 1; }

  /// a b^T of each head: queries x keys. `b` is of K or V.
  void scores(const Matrices& a, const Matrices& b, const Matrices& to) const {
    for (std::int64_t turn = 0; turn < sharing_; ++turn)
      multiply({queries_, keys_, width_}, in_turn(a, turn), transposed(b), in_turn(to, turn), false);
  }
  /// s x of each head: queries x width. `x` is of K or V.
  void mix(const Matrices& s, const Matrices& x, const Matrices& to, bool add) const {
    for (std::int64_t turn = 0; turn < sharing_; ++turn)
      multiply({queries_, width_, keys_}, in_turn(s, turn), x, in_turn(to, turn), add);
  }
  /// s^T x, keys x width, summed over the heads that share K and V. `to` is of K or V.
  void mix_back(const Matrices& s, const Matrices& x, const Matrices& to, bool add) const {
    for (std::int64_t turn = 0; turn < sharing_; ++turn)
      multiply({keys_, width_, queries_}, transposed(in_turn(s, turn)), in_turn(x, turn), to, add || turn > 0);
  }

 private:
  void multiply(ProductShape shape, const Matrices& a, const Matrices& b, const Matrices& c, bool add) const {
    shape.count = key_heads_;
    products_->multiply(shape, a, b, c, add);
  }
  static Matrices transposed(Matrices m) {
    m.transposed = true;
    return m;
  }
  /// From the matrices of all heads of Q, one of each group that shares K and V.
  Matrices in_turn(Matrices m, std::int64_t turn) const {
    m.offset += turn * m.distance;
    m.distance *= sharing_;
    return m;
  }

  Products* products_;
  std::int64_t key_heads_, sharing_, queries_, keys_, width_;
};

/// Rounds rows of sums, or adds them to what is there.
template <class T>
struct RoundRows {
  bool add;
  const Wide<T>* sums;
  std::int64_t columns;
  T* to;
  std::int64_t stride;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const Wide<T> sum = sums[row * columns + column];
    T& place = to[row * stride + column];
    place = static_cast<T>(add ? place + sum : sum);
  }
};

/// The gradient of K or V, which is rounded once, however many heads of Q share it.
template <class T>
void mix_back(const Device& device, const HeadProducts& products, const Matrices& s, const Matrices& x,
              const Matrices& to, bool add) {
  if (std::is_same_v<T, Wide<T>> || !products.shares_keys()) return products.mix_back(s, x, to, add);
  const std::int64_t columns = products.key_columns();
  const Scratch<Wide<T>> sums(*device.memory, products.keys() * columns);
  products.mix_back(s, x, {sums.data(), 0, columns, products.width(), false, true}, false);
  T* const rounded = static_cast<T*>(const_cast<void*>(to.base)) + to.offset;
  each_in_rows(device, products.keys(), columns, RoundRows<T>{add, sums.data(), columns, rounded, to.stride});
}

/// Scores before the softmax, or gradients of probabilities: wide, so in mixed precision in a separate array.
template <class T>
class WideSquares {
 public:
  WideSquares(const Device& device, std::int64_t count, T* narrow) : narrow_(narrow) {
    if constexpr (!kSame) scratch_.emplace(*device.memory, count);
  }
  Wide<T>* data() const {
    if constexpr (kSame)
      return narrow_;
    else
      return scratch_->data();
  }

 private:
  static constexpr bool kSame = std::is_same_v<T, Wide<T>>;
  T* narrow_;
  std::optional<Scratch<Wide<T>>> scratch_;
};

}  // namespace stagecraft::cuda
