// Attention that holds the scores of a row for all keys at once, and keeps probabilities for the backward: forward and
// gradients. In parts it is in attention_parts.cpp, with keys from short vectors in latent_attention.cpp.

#include <algorithm>

#include "backends/cpu/attention_rows.hpp"

namespace stagecraft::cpu {
namespace {

/// Heads of Q that share a head of K and V.
std::int64_t sharing(const Operation& op) { return op.heads / head_shape(op).key_value_heads; }

/// Q of one head, and K and V that it uses, or their gradients.
template <class T>
struct Parts {
  MatrixView<T> q, k, v;
};
/// `keys` has K and V where they are the second input.
template <class T>
Parts<T> parts(const real::Tensor& tensor, const real::Tensor& keys_apart, const Operation& op,
               const AttentionRows& rows, std::int64_t sample, std::int64_t head) {
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

template <class T, bool kMixed>
void forward(const real::Call& call) {
  const Operation& op = *call.operation;
  if (op.inputs.size() == 3) return latent_attention<T>(call);
  const AttentionRows rows(call);
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const Parts<T> x = parts<T>(call.inputs[0], keys_of(call), op, rows, sample, head);
      T* const p = probabilities<T>(call, rows, sample, head);
      multiply_second_transposed(false, view(p, rows.queries, rows.keys), x.q, x.k);
      apply_softmax(op, rows, p);
      round_factor<T, kMixed>(rows.queries * rows.keys, p);
      multiply(false, output_of_head<T>(call.output, op, sample, head), view(p, rows.queries, rows.keys), x.v);
    }
}

template <class T, bool kMixed>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool& pool) {
  const Operation& op = *call.operation;
  if (op.inputs.size() == 3) return latent_attention_gradient<T>(call, d_output, d_inputs, pool);
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const AttentionRows rows(call);
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
      const MatrixView<T> dy = output_of_head<T>(d_output, op, sample, head);
      T* const p = probabilities<T>(call, rows, sample, head);
      const bool add = add_keys || head % sharing(op) > 0;  // Heads of Q that share K and V sum their gradients.
      multiply_first_transposed(add, d.v, view(p, rows.queries, rows.keys), dy);
      multiply_second_transposed(false, d_scores, dy, x.v);
      through_softmax<T>(op, rows, p, scratch.data());
      round_factor<T, kMixed>(rows.queries * rows.keys, scratch.data());
      multiply(to.add, d.q, d_scores, x.k);
      multiply_first_transposed(add, d.k, d_scores, x.q);
    }
}

}  // namespace

template <class T>
OperationKernels attention_kernels() {
  return {forward<T, false>, input_gradient<T, false>, nullptr};
}
template OperationKernels attention_kernels<float>();
template OperationKernels attention_kernels<double>();

OperationKernels mixed_attention_kernels() { return {forward<float, true>, input_gradient<float, true>, nullptr}; }

}  // namespace stagecraft::cpu
