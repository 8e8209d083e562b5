// Chooses the experts of each row by its scores, copies rows for their experts (Dispatch) and weighs the results
// (Combine): forward and gradients.
#include <limits>

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

/// The experts of a row, the one with the largest score first and of equal scores the first, and the softmax of their
/// scores. `weights` may be null.
template <class T>
struct ChooseExperts {
  const T* scores;
  std::int64_t experts, active;
  std::int32_t* chosen;
  T* weights;

  __device__ bool is_taken(const std::int32_t* mine, std::int64_t count, std::int32_t expert) const {
    for (std::int64_t n = 0; n < count; ++n)
      if (mine[n] == expert) return true;
    return false;
  }
  __device__ void operator()(std::int64_t row) const {
    const T* const s = scores + row * experts;
    std::int32_t* const mine = chosen + row * active;
    for (std::int64_t n = 0; n < active; ++n) {
      std::int32_t best = -1;
      for (std::int32_t e = 0; e < experts; ++e)
        if ((best < 0 || s[e] > s[best]) && !is_taken(mine, n, e)) best = e;
      mine[n] = best;
    }
    if (!weights) return;
    T* const w = weights + row * active;
    T sum{};
    for (std::int64_t n = 0; n < active; ++n) sum += w[n] = real::exponential(s[mine[n]] - s[mine[0]]);
    const T inverse = 1 / sum;
    for (std::int64_t n = 0; n < active; ++n) w[n] *= inverse;
  }
};

/// The choices of all rows of a Combine.
template <class T>
class ExpertWeights {
 public:
  ExpertWeights(const Device& device, const real::Call& call, std::int64_t rows)
      : chosen_(*device.memory, rows * call.operation->active),
        weights_(*device.memory, rows * call.operation->active) {
    each(device, rows,
         ChooseExperts<T>{numbers<T>(call.inputs[1]), call.operation->experts, call.operation->active, chosen_.data(),
                          weights_.data()});
  }
  const std::int32_t* chosen() const { return chosen_.data(); }
  const T* weights() const { return weights_.data(); }

 private:
  Scratch<std::int32_t> chosen_;
  Scratch<T> weights_;
};

template <class T>
struct RepeatRows {
  std::int64_t active, columns;
  const T* from;
  T* to;
  __device__ void operator()(std::int64_t copy, std::int64_t column) const {
    to[copy * columns + column] = from[copy / active * columns + column];
  }
};

/// Adds the copies of a row in their order.
template <class T>
struct SumCopies {
  bool add;
  std::int64_t active, columns;
  const T* from;
  T* to;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    T& sum = to[row * columns + column];
    for (std::int64_t n = 0; n < active; ++n) {
      const T next = from[(row * active + n) * columns + column];
      sum = add || n > 0 ? sum + next : next;
    }
  }
};

template <class T>
struct WeighRows {
  std::int64_t active, columns;
  const T *from, *weights;
  T* to;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    T sum{};
    for (std::int64_t n = 0; n < active; ++n)
      sum += weights[row * active + n] * from[(row * active + n) * columns + column];
    to[row * columns + column] = sum;
  }
};

template <class T>
struct SpreadGradient {
  bool add;
  std::int64_t active, columns;
  const T *from, *weights;
  T* to;
  __device__ void operator()(std::int64_t copy, std::int64_t column) const {
    const T product = weights[copy] * from[copy / active * columns + column];
    T& number = to[copy * columns + column];
    number = add ? number + product : product;
  }
};

/// With s the products of d_output with the rows of the experts, and p the weights: d_scores = p (s - sum(p s)). A
/// block has a row.
template <class T>
__global__ void score_gradient_kernel(std::int64_t experts, std::int64_t active, std::int64_t columns, const T* rows,
                                      const T* d_output, const std::int32_t* chosen, const T* weights, T* products,
                                      T* d_scores) {
  const auto shared = shared_memory<T>();
  const std::int64_t row = blockIdx.x;
  const T* const dy = d_output + row * columns;
  const T* const w = weights + row * active;
  T* const s = products + row * active;
  T along{};
  for (std::int64_t n = 0; n < active; ++n) {
    const T* const x = rows + (row * active + n) * columns;
    const T product = row_sum<T>(columns, shared, [=](std::int64_t i) { return dy[i] * x[i]; });
    if (threadIdx.x == 0) s[n] = product;
    along += w[n] * product;
  }
  if (threadIdx.x != 0) return;
  for (std::int64_t n = 0; n < active; ++n) d_scores[row * experts + chosen[row * active + n]] += w[n] * (s[n] - along);
}

template <class T>
void clear_unless_added(const Device& device, const real::Gradient& to) {
  if (!to.tensor || to.add) return;
  check(cudaMemsetAsync(to.tensor.data, 0, static_cast<std::size_t>(to.tensor.size()) * sizeof(T), device.stream),
        "cudaMemsetAsync");
  submitted(device.stream, "cudaMemsetAsync");
}

template <class T>
void repeat_rows(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  each_in_rows(device, call.output.rows, op.columns,
               RepeatRows<T>{op.active, op.columns, numbers<T>(call.inputs[0]), numbers<T>(call.output)});
}

/// Whoever chose where the copies go gets no gradient: it has one in the Combine.
template <class T>
void repeat_rows_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                          std::span<const real::Gradient> d_inputs) {
  const Operation& op = *call.operation;
  clear_unless_added<T>(device, d_inputs[1]);
  if (const real::Gradient& to = d_inputs[0]; to.tensor)
    each_in_rows(device, to.tensor.rows, op.columns,
                 SumCopies<T>{to.add, op.active, op.columns, numbers<T>(d_output), numbers<T>(to.tensor)});
}

template <class T>
void weigh_rows(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const ExpertWeights<T> choice(device, call, call.output.rows);
  each_in_rows(
      device, call.output.rows, op.columns,
      WeighRows<T>{op.active, op.columns, numbers<T>(call.inputs[0]), choice.weights(), numbers<T>(call.output)});
}

template <class T>
void weigh_rows_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                         std::span<const real::Gradient> d_inputs) {
  const Operation& op = *call.operation;
  const std::int64_t rows = d_output.rows;
  const ExpertWeights<T> choice(device, call, rows);
  if (const real::Gradient& to = d_inputs[0]; to.tensor)
    each_in_rows(device, rows * op.active, op.columns,
                 SpreadGradient<T>{to.add, op.active, op.columns, numbers<T>(d_output), choice.weights(),
                                   numbers<T>(to.tensor)});
  const real::Gradient& scores = d_inputs[1];
  if (!scores.tensor || rows == 0) return;
  clear_unless_added<T>(device, scores);
  const Scratch<T> products(*device.memory, rows * op.active);
  const dim3 threads(threads_for(op.columns));
  launch(score_gradient_kernel<T>, dim3(static_cast<unsigned>(rows)), threads, threads.x * sizeof(T), device.stream,
         std::int64_t{op.experts}, std::int64_t{op.active}, std::int64_t{op.columns}, numbers<T>(call.inputs[0]),
         numbers<T>(d_output), choice.chosen(), choice.weights(), products.data(), numbers<T>(scores.tensor));
}

}  // namespace

template <class T>
void choose_experts(const Device& device, const Operation& op, const real::Tensor& scores, std::int32_t* chosen) {
  each(device, scores.rows, ChooseExperts<T>{numbers<T>(scores), op.experts, op.active, chosen, nullptr});
}
template void choose_experts<float>(const Device&, const Operation&, const real::Tensor&, std::int32_t*);
template void choose_experts<double>(const Device&, const Operation&, const real::Tensor&, std::int32_t*);

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

}  // namespace stagecraft::cuda
