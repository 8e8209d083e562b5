#include <algorithm>
#include <cmath>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
T scale(const Operation& op) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(head_shape(op).query)));
}

/// Rows of a sample: queries, and the keys and values that they look at. They are equal unless a context group divides
/// the queries; then a second input has the keys and values of all rows.
struct Rows {
  std::int64_t queries = 0, keys = 0, first_query = 0;
  explicit Rows(const real::Call& call)
      : queries(call.operation->rows), keys(queries), first_query(call.inputs.size() > 1 ? call.first_row : 0) {
    if (call.inputs.size() > 1) keys = call.inputs[1].rows / call.samples;
  }
};

/// Head `head` of sample `sample` in the output.
template <class T>
MatrixView<T> head_view(const real::Tensor& tensor, const Operation& op, std::int64_t sample, std::int64_t head) {
  const std::int64_t width = op.columns / op.heads;
  return view(numbers<T>(tensor) + sample * op.rows * op.columns + head * width, op.rows, width, op.columns);
}

/// Heads of Q that share a head of K and V.
std::int64_t sharing(const Operation& op) { return op.heads / head_shape(op).key_value_heads; }

/// Q of one head, and K and V that it uses, or their gradients.
template <class T>
struct Parts {
  MatrixView<T> q, k, v;
};
/// `keys` has K and V where they are an input of their own.
template <class T>
Parts<T> parts(const real::Tensor& tensor, const real::Tensor& keys_apart, const Operation& op, const Rows& rows,
               std::int64_t sample, std::int64_t head) {
  const HeadShape s = head_shape(op);
  const std::int64_t stride = query_key_value_columns(s), shared = head / sharing(op);
  T* const queries = numbers<T>(tensor) + sample * op.rows * stride;
  T* keys = queries + std::int64_t{s.heads} * s.query;
  std::int64_t key_stride = stride;
  if (keys_apart) {
    key_stride = stride - std::int64_t{s.heads} * s.query;
    keys = numbers<T>(keys_apart) + sample * rows.keys * key_stride;
  }
  T* const values = keys + std::int64_t{s.key_value_heads} * s.query;
  return {view(queries + head * s.query, op.rows, s.query, stride),
          view(keys + shared * s.query, rows.keys, s.query, key_stride),
          view(values + shared * s.value, rows.keys, s.value, key_stride)};
}

real::Tensor keys_of(const real::Call& call) { return call.inputs.size() > 1 ? call.inputs[1] : real::Tensor{}; }

template <class T>
T* probabilities(const real::Call& call, const Rows& rows, std::int64_t sample, std::int64_t head) {
  return numbers<T>(call.saved) + (sample * call.operation->heads + head) * rows.queries * rows.keys;
}

/// The rows that a row looks at: `count` of them from `first` on.
struct Seen {
  std::int64_t first = 0, count = 0;
  Seen(const Operation& op, const Rows& rows, std::int64_t row)
      : count(op.causal ? rows.first_query + row + 1 : rows.keys) {
    if (op.window == 0 || count <= op.window) return;
    first = count - op.window, count = op.window;
  }
};

/// softmax of each row of `scores`; 0 for what a row does not see.
template <class T>
void normalise(const Operation& op, const Rows& rows, T* scores) {
  for (std::int64_t row = 0; row < rows.queries; ++row) {
    T* const row_scores = scores + row * rows.keys;
    const Seen seen(op, rows, row);
    T* const s = row_scores + seen.first;
    const T inverse = 1 / softmax_exponentials(seen.count, s, scale<T>(op), s).sum;
    put(false, seen.count, s, [=](std::int64_t i) { return s[i] * inverse; });
    std::fill(row_scores, s, T{0});
    std::fill(s + seen.count, row_scores + rows.keys, T{0});
  }
}

/// Turns gradients of probabilities into gradients of Q K^T: scale * p * (d - sum(d * p)).
template <class T>
void through_softmax(const Operation& op, const Rows& rows, const T* p, T* d) {
  for (std::int64_t row = 0; row < rows.queries; ++row, p += rows.keys, d += rows.keys) {
    const Seen seen(op, rows, row);
    const T factor = scale<T>(op);
    const T along = sum<T>(seen.count, [=](std::int64_t i) { return d[seen.first + i] * p[seen.first + i]; });
    put(false, rows.keys, d, [=](std::int64_t i) { return factor * p[i] * (d[i] - along); });
  }
}

template <class T>
void forward(const real::Call& call) {
  const Operation& op = *call.operation;
  const Rows rows(call);
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const Parts<T> x = parts<T>(call.inputs[0], keys_of(call), op, rows, sample, head);
      T* const p = probabilities<T>(call, rows, sample, head);
      multiply_second_transposed(false, view(p, rows.queries, rows.keys), x.q, x.k);
      normalise(op, rows, p);
      multiply(false, head_view<T>(call.output, op, sample, head), view(p, rows.queries, rows.keys), x.v);
    }
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool& pool) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const Operation& op = *call.operation;
  const Rows rows(call);
  const real::Gradient keys_apart = d_inputs.size() > 1 ? d_inputs[1] : real::Gradient{};
  // The gradient of keys and values that lie apart comes back later, into the columns that Q leaves.
  if (keys_apart.tensor && !to.add) std::fill_n(numbers<T>(to.tensor), to.tensor.size(), T{0});
  const bool add_keys = keys_apart.tensor ? keys_apart.add : to.add;
  const Scratch<T> scratch(pool, rows.queries * rows.keys);
  const MatrixView<T> d_scores = view(scratch.data(), rows.queries, rows.keys);
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const Parts<T> x = parts<T>(call.inputs[0], keys_of(call), op, rows, sample, head);
      const Parts<T> d = parts<T>(to.tensor, keys_apart.tensor, op, rows, sample, head);
      const MatrixView<T> dy = head_view<T>(d_output, op, sample, head);
      T* const p = probabilities<T>(call, rows, sample, head);
      const bool add = add_keys || head % sharing(op) > 0;  // Heads of Q that share K and V sum their gradients.
      multiply_first_transposed(add, d.v, view(p, rows.queries, rows.keys), dy);
      multiply_second_transposed(false, d_scores, dy, x.v);
      through_softmax<T>(op, rows, p, scratch.data());
      multiply(to.add, d.q, d_scores, x.k);
      multiply_first_transposed(add, d.k, d_scores, x.q);
    }
}

}  // namespace

template <class T>
OperationKernels attention_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template OperationKernels attention_kernels<float>();
template OperationKernels attention_kernels<double>();

}  // namespace stagecraft::cpu
