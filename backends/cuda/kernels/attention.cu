#include <cmath>
#include <optional>
#include <type_traits>

#include "backends/cuda/kernels/matmul.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

template <class T>
T scale(const Operation& op) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(op.columns / op.heads)));
}

/// softmax of each row of the scores, which may be made in place; 0 for what a row does not see.
template <class T>
__global__ void softmax_kernel(std::int64_t columns, bool causal, Wide<T> factor, Wide<T>* scores, T* probabilities) {
  const auto shared = shared_memory<Wide<T>>();
  const std::int64_t row = blockIdx.x, seen = causal ? row % columns + 1 : columns;
  Wide<T>* const s = scores + row * columns;
  T* const p = probabilities + row * columns;
  const Wide<T> inverse = 1 / softmax_exponentials(seen, s, factor, s, shared).sum;
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    p[i] = static_cast<T>(i < seen ? s[i] * inverse : Wide<T>{0});
}

/// Turns gradients of probabilities into gradients of Q K^T: scale * p * (d - sum(d * p)).
template <class T>
__global__ void through_softmax_kernel(std::int64_t columns, bool causal, Wide<T> factor, const T* probabilities,
                                       const Wide<T>* gradients, T* d_scores) {
  const auto shared = shared_memory<Wide<T>>();
  const std::int64_t row = blockIdx.x, seen = causal ? row % columns + 1 : columns;
  const T* const p = probabilities + row * columns;
  const Wide<T>* const d = gradients + row * columns;
  const Wide<T> along = row_sum<Wide<T>>(seen, shared, [=](std::int64_t i) { return d[i] * p[i]; });
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    d_scores[row * columns + i] = static_cast<T>(factor * p[i] * (d[i] - along));
}

/// The products of all heads of a sample.
class Heads {
 public:
  Heads(const Device& device, const Operation& op, std::int64_t sample) : device_(device), op_(op), sample_(sample) {}

  /// Q (0), K (1) or V (2) of every head, or their gradients, or with one part only the output.
  Matrices part(const real::Tensor& tensor, int parts, int which) const {
    const std::int64_t stride = std::int64_t{parts} * op_.columns;
    return {tensor.data, sample_ * op_.rows * stride + std::int64_t{which} * op_.columns, stride, width(), false};
  }
  Matrices square(const void* data, std::int64_t sample, bool is_wide = false) const {
    const std::int64_t numbers = std::int64_t{op_.rows} * op_.rows;
    return {data, sample * op_.heads * numbers, op_.rows, numbers, false, is_wide};
  }
  /// a b^T of each head: rows x rows.
  void scores(const Matrices& a, const Matrices& b, const Matrices& to) const {
    device_.products->multiply({op_.rows, op_.rows, width(), op_.heads}, a, transposed(b), to, false);
  }
  /// s x of each head: rows x width.
  void mix(const Matrices& s, const Matrices& x, const Matrices& to, bool add) const {
    device_.products->multiply({op_.rows, width(), op_.rows, op_.heads}, s, x, to, add);
  }
  static Matrices transposed(Matrices m) {
    m.transposed = true;
    return m;
  }

 private:
  std::int64_t width() const { return op_.columns / op_.heads; }

  const Device& device_;
  const Operation& op_;
  std::int64_t sample_;
};

/// Scores before the softmax, or gradients of probabilities: wide, so in mixed precision in an array of their own.
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

template <class T>
void forward(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const real::Tensor& x = call.inputs[0];
  const WideSquares<T> scores(device, call.samples * op.heads * op.rows * op.rows, numbers<T>(call.saved));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, sample);
    heads.scores(heads.part(x, 3, 0), heads.part(x, 3, 1), heads.square(scores.data(), sample, true));
  }
  const unsigned threads = threads_for(op.rows);
  launch(softmax_kernel<T>, dim3(static_cast<unsigned>(call.samples * op.heads * op.rows)), dim3(threads),
         threads * sizeof(Wide<T>), device.stream, std::int64_t{op.rows}, op.causal, scale<Wide<T>>(op), scores.data(),
         numbers<T>(call.saved));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, sample);
    heads.mix(heads.square(call.saved.data, sample), heads.part(x, 3, 2), heads.part(call.output, 1, 0), false);
  }
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const Operation& op = *call.operation;
  const real::Tensor &x = call.inputs[0], &dx = to.tensor;
  const std::int64_t numbers_each = std::int64_t{op.heads} * op.rows * op.rows;
  const Scratch<T> scratch(*device.memory, numbers_each);
  const WideSquares<T> gradients(device, numbers_each, scratch.data());
  const unsigned threads = threads_for(op.rows);
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, sample);
    const Matrices p = heads.square(call.saved.data, sample), d = heads.square(scratch.data(), 0);
    const Matrices dy = heads.part(d_output, 1, 0);
    heads.mix(Heads::transposed(p), dy, heads.part(dx, 3, 2), to.add);
    heads.scores(dy, heads.part(x, 3, 2), heads.square(gradients.data(), 0, true));
    launch(through_softmax_kernel<T>, dim3(static_cast<unsigned>(op.heads * op.rows)), dim3(threads),
           threads * sizeof(Wide<T>), device.stream, std::int64_t{op.rows}, op.causal, scale<Wide<T>>(op),
           numbers<T>(call.saved) + sample * numbers_each, gradients.data(), scratch.data());
    heads.mix(d, heads.part(x, 3, 1), heads.part(dx, 3, 0), to.add);
    heads.mix(Heads::transposed(d), heads.part(x, 3, 0), heads.part(dx, 3, 1), to.add);
  }
}

}  // namespace

template <class T>
OperationKernels attention_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template OperationKernels attention_kernels<float>();
template OperationKernels attention_kernels<double>();
template OperationKernels attention_kernels<Bfloat16>();

}  // namespace stagecraft::cuda
