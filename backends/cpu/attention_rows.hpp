#pragma once

#include <algorithm>
#include <cmath>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/bfloat16.hpp"

/// What kernels of attention share.
namespace stagecraft::cpu {

template <class T>
T score_scale(const Operation& op) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(head_shape(op).query)));
}

/// What a product reads in 16 bits, in mixed precision.
template <class T, bool kMixed>
void round_factor(std::int64_t count, T* x) {
  if constexpr (kMixed) put(false, count, x, [x](std::int64_t i) { return static_cast<T>(real::Bfloat16(x[i])); });
}

/// Rows of a sample: queries, and the keys and values that they look at. They are equal unless a context group divides
/// the queries; then a second input has the keys and values of all rows.
struct AttentionRows {
  std::int64_t queries = 0, keys = 0, first_query = 0;
  explicit AttentionRows(const real::Call& call)
      : queries(call.operation->rows), keys(queries), first_query(call.inputs.size() > 1 ? call.first_row : 0) {
    if (call.inputs.size() > 1) keys = call.inputs[1].rows / call.samples;
  }
};

/// Head `head` of sample `sample` in the output.
template <class T>
MatrixView<T> output_of_head(const real::Tensor& tensor, const Operation& op, std::int64_t sample, std::int64_t head) {
  const std::int64_t width = op.columns / op.heads;
  return view(numbers<T>(tensor) + sample * op.rows * op.columns + head * width, op.rows, width, op.columns);
}

template <class T>
T* probabilities(const real::Call& call, const AttentionRows& rows, std::int64_t sample, std::int64_t head) {
  return numbers<T>(call.saved) + (sample * call.operation->heads + head) * rows.queries * rows.keys;
}

/// The rows that a row looks at: `count` of them from `first` on.
struct SeenRows {
  std::int64_t first = 0, count = 0;
  SeenRows(const Operation& op, const AttentionRows& rows, std::int64_t row)
      : count(op.causal ? rows.first_query + row + 1 : rows.keys) {
    if (op.window == 0 || count <= op.window) return;
    first = count - op.window, count = op.window;
  }
};

/// softmax of each row of `scores`; 0 for what a row does not see.
template <class T>
void apply_softmax(const Operation& op, const AttentionRows& rows, T* scores) {
  for (std::int64_t row = 0; row < rows.queries; ++row) {
    T* const row_scores = scores + row * rows.keys;
    const SeenRows seen(op, rows, row);
    T* const s = row_scores + seen.first;
    const T inverse = 1 / softmax_exponentials(seen.count, s, score_scale<T>(op), s).sum;
    put(false, seen.count, s, [=](std::int64_t i) { return s[i] * inverse; });
    std::fill(row_scores, s, T{0});
    std::fill(s + seen.count, row_scores + rows.keys, T{0});
  }
}

/// Turns gradients of probabilities into gradients of Q K^T: scale * p * (d - sum(d * p)).
template <class T>
void through_softmax(const Operation& op, const AttentionRows& rows, const T* p, T* d) {
  for (std::int64_t row = 0; row < rows.queries; ++row, p += rows.keys, d += rows.keys) {
    const SeenRows seen(op, rows, row);
    const T factor = score_scale<T>(op);
    const T along = sum<T>(seen.count, [=](std::int64_t i) { return d[seen.first + i] * p[seen.first + i]; });
    put(false, rows.keys, d, [=](std::int64_t i) { return factor * p[i] * (d[i] - along); });
  }
}

}  // namespace stagecraft::cpu
