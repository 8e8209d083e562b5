// Multi-head latent attention (DeepSeek-V2), whose heads share the rotated numbers of K: forward and gradients.

#include <algorithm>

#include "backends/cpu/attention_rows.hpp"

namespace stagecraft::cpu {
namespace {

/// One head of the three inputs, or of their gradients. Each head of Q and K has unrotated numbers, then numbers with
/// a rotation; the rotated numbers of K are the same for all heads (DeepSeek-AI, DeepSeek-V2, 2024, section 2.1.3).
template <class T>
struct LatentHead {
  MatrixView<T> q, q_rotated, k, v, k_rotated;
};

template <class T>
LatentHead<T> latent_head(const real::Call& call, const real::Tensor (&arrays)[3], std::int64_t sample,
                          std::int64_t head) {
  const Operation& op = *call.operation;
  const HeadShape s = head_shape(op);
  const std::int64_t rows = op.rows, rotated = call.inputs[2].columns, plain = s.query - rotated;
  const std::int64_t q_stride = std::int64_t{s.heads} * s.query, k_stride = s.heads * (plain + s.value);
  T* const q = numbers<T>(arrays[0]) + sample * rows * q_stride + head * s.query;
  T* const k = numbers<T>(arrays[1]) + sample * rows * k_stride + head * (plain + s.value);
  T* const shared = numbers<T>(arrays[2]) + sample * rows * rotated;
  return {view(q, rows, plain, q_stride), view(q + plain, rows, rotated, q_stride), view(k, rows, plain, k_stride),
          view(k + plain, rows, s.value, k_stride), view(shared, rows, rotated)};
}

template <class T>
LatentHead<T> inputs_of(const real::Call& call, std::int64_t sample, std::int64_t head) {
  return latent_head<T>(call, {call.inputs[0], call.inputs[1], call.inputs[2]}, sample, head);
}

}  // namespace

template <class T>
void latent_attention(const real::Call& call) {
  const Operation& op = *call.operation;
  AttentionRows rows(call);
  rows.first_query = 0;
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const LatentHead<T> x = inputs_of<T>(call, sample, head);
      T* const p = probabilities<T>(call, rows, sample, head);
      const MatrixView<T> scores = view(p, rows.queries, rows.keys);
      multiply_second_transposed(false, scores, x.q, x.k);
      multiply_second_transposed(true, scores, x.q_rotated, x.k_rotated);
      apply_softmax(op, rows, p);
      multiply(false, output_of_head<T>(call.output, op, sample, head), scores, x.v);
    }
}

template <class T>
void latent_attention_gradient(const real::Call& call, const real::Tensor& d_output,
                               std::span<const real::Gradient> d_inputs, MemoryPool& pool) {
  const Operation& op = *call.operation;
  AttentionRows rows(call);
  rows.first_query = 0;
  const real::Gradient &d_q = d_inputs[0], &d_k = d_inputs[1], &d_shared = d_inputs[2];
  // Where no gradient is needed, nothing is written.
  const auto array = [&](int n) { return d_inputs[n].tensor ? d_inputs[n].tensor : call.inputs[n]; };
  const real::Tensor gradients[3] = {array(0), array(1), array(2)};
  const Scratch<T> scratch(pool, rows.queries * rows.keys);
  const MatrixView<T> d_scores = view(scratch.data(), rows.queries, rows.keys);
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const LatentHead<T> x = inputs_of<T>(call, sample, head);
      const LatentHead<T> d = latent_head<T>(call, gradients, sample, head);
      const MatrixView<T> dy = output_of_head<T>(d_output, op, sample, head);
      T* const p = probabilities<T>(call, rows, sample, head);
      if (d_k.tensor) multiply_first_transposed(d_k.add, d.v, view(p, rows.queries, rows.keys), dy);
      multiply_second_transposed(false, d_scores, dy, x.v);
      through_softmax<T>(op, rows, p, scratch.data());
      if (d_q.tensor) multiply(d_q.add, d.q, d_scores, x.k);
      if (d_q.tensor) multiply(d_q.add, d.q_rotated, d_scores, x.k_rotated);
      if (d_k.tensor) multiply_first_transposed(d_k.add, d.k, d_scores, x.q);
      if (d_shared.tensor)  // All heads read it.
        multiply_first_transposed(d_shared.add || head > 0, d.k_rotated, d_scores, x.q_rotated);
    }
}

template void latent_attention<float>(const real::Call&);
template void latent_attention<double>(const real::Call&);
template void latent_attention_gradient<float>(const real::Call&, const real::Tensor&, std::span<const real::Gradient>,
                                               MemoryPool&);
template void latent_attention_gradient<double>(const real::Call&, const real::Tensor&, std::span<const real::Gradient>,
                                                MemoryPool&);

}  // namespace stagecraft::cpu
