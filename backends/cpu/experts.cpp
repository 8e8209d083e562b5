// Chooses the experts of each row by its scores, copies rows for their experts (Dispatch) and weighs the results
// (Combine): forward and gradients.

#include <algorithm>
#include <vector>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {

template <class T>
void choose_experts(const T* scores, int experts, int active, std::int32_t* chosen) {
  for (int n = 0; n < active; ++n) {
    int best = -1;
    for (int e = 0; e < experts; ++e)
      if ((best < 0 || scores[e] > scores[best]) && std::find(chosen, chosen + n, e) == chosen + n) best = e;
    chosen[n] = best;
  }
}
template void choose_experts<float>(const float*, int, int, std::int32_t*);
template void choose_experts<double>(const double*, int, int, std::int32_t*);

namespace {

template <class T>
void repeat_rows(const real::Call& call) {
  const std::int64_t columns = call.operation->columns, active = call.operation->active;
  for (std::int64_t copy = 0; copy < call.output.rows; ++copy)
    put(false, columns, numbers<T>(call.output) + copy * columns,
        [x = numbers<T>(call.inputs[0]) + copy / active * columns](std::int64_t i) { return x[i]; });
}

/// Whoever chose where the copies go gets no gradient: it has one in the Combine.
template <class T>
void repeat_rows_gradient(const real::Call& call, const real::Tensor& d_output,
                          std::span<const real::Gradient> d_inputs, MemoryPool&) {
  const real::Gradient &to = d_inputs[0], &scores = d_inputs[1];
  if (scores.tensor && !scores.add) std::fill_n(numbers<T>(scores.tensor), scores.tensor.size(), T{0});
  if (!to.tensor) return;
  const std::int64_t columns = call.operation->columns, active = call.operation->active;
  for (std::int64_t copy = 0; copy < d_output.rows; ++copy)
    put(to.add || copy % active > 0, columns, numbers<T>(to.tensor) + copy / active * columns,
        [d = numbers<T>(d_output) + copy * columns](std::int64_t i) { return d[i]; });
}

/// The experts of one row, and the softmax of their scores.
template <class T>
struct ExpertWeights {
  std::vector<std::int32_t> chosen;
  std::vector<T> weights;
  explicit ExpertWeights(const Operation& op) : chosen(op.active), weights(op.active) {}

  void read(const Operation& op, const T* scores) {
    choose_experts(scores, op.experts, op.active, chosen.data());
    for (int n = 0; n < op.active; ++n) weights[n] = scores[chosen[n]];
    const T inverse = 1 / softmax_exponentials(op.active, weights.data(), T{1}, weights.data()).sum;
    for (T& weight : weights) weight *= inverse;
  }
};

template <class T>
void weigh_rows(const real::Call& call) {
  const Operation& op = *call.operation;
  ExpertWeights<T> row_weights(op);
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    row_weights.read(op, numbers<T>(call.inputs[1]) + row * op.experts);
    for (std::int64_t n = 0; n < op.active; ++n)
      put(n > 0, op.columns, numbers<T>(call.output) + row * op.columns,
          [x = numbers<T>(call.inputs[0]) + (row * op.active + n) * op.columns,
           weight = row_weights.weights[n]](std::int64_t i) { return weight * x[i]; });
  }
}

/// With s the products of d_output with the rows of the experts, and p the weights: d_scores = p (s - sum(p s)).
template <class T>
void weigh_rows_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                         MemoryPool&) {
  const Operation& op = *call.operation;
  const real::Gradient &to = d_inputs[0], &scores = d_inputs[1];
  if (scores.tensor && !scores.add) std::fill_n(numbers<T>(scores.tensor), scores.tensor.size(), T{0});
  ExpertWeights<T> row_weights(op);
  std::vector<T> products(op.active);
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    row_weights.read(op, numbers<T>(call.inputs[1]) + row * op.experts);
    const T* const dy = numbers<T>(d_output) + row * op.columns;
    T along = 0;
    for (std::int64_t n = 0; n < op.active; ++n) {
      const std::int64_t first = (row * op.active + n) * op.columns;
      const T weight = row_weights.weights[n];
      const T* const x = numbers<T>(call.inputs[0]) + first;
      if (to.tensor)
        put(to.add, op.columns, numbers<T>(to.tensor) + first, [=](std::int64_t i) { return weight * dy[i]; });
      products[n] = sum<T>(op.columns, [=](std::int64_t i) { return dy[i] * x[i]; });
      along += weight * products[n];
    }
    if (!scores.tensor) continue;
    for (std::int64_t n = 0; n < op.active; ++n)
      numbers<T>(scores.tensor)[row * op.experts + row_weights.chosen[n]] +=
          row_weights.weights[n] * (products[n] - along);
  }
}

}  // namespace

template <class T>
OperationKernels dispatch_kernels() {
  return {repeat_rows<T>, repeat_rows_gradient<T>, nullptr};
}
template <class T>
OperationKernels combine_kernels() {
  return {weigh_rows<T>, weigh_rows_gradient<T>, nullptr};
}
template OperationKernels dispatch_kernels<float>();
template OperationKernels dispatch_kernels<double>();
template OperationKernels combine_kernels<float>();
template OperationKernels combine_kernels<double>();

}  // namespace stagecraft::cpu
