// Attention that keeps its probabilities for the backward: forward and gradients. In mixed precision,
// library_attention.cpp computes what cuDNN has an engine for.

#include <cmath>
#include <type_traits>

#include "backends/cuda/kernels/head_products.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

template <class T>
T scale(const Operation& op) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(op.columns / op.heads)));
}

/// Rows of a sample: queries, and the keys and values that they look at. They are equal unless a context group divides
/// the queries; then a second input has the keys and values of all rows.
struct Rows {
  std::int64_t queries = 0, keys = 0, first_query = 0;
  bool causal = false;

  explicit Rows(const real::Call& call) : queries(call.operation->rows), keys(queries), causal(call.operation->causal) {
    if (call.inputs.size() < 2) return;
    keys = call.inputs[1].rows / call.samples;
    first_query = call.first_row;
  }
  /// Keys that a row of scores sees; `row` counts through heads and samples.
  __device__ std::int64_t seen(std::int64_t row) const { return causal ? first_query + row % queries + 1 : keys; }
};

/// softmax of each row of the scores, which may be made in place; 0 for what a row does not see.
template <class T>
__global__ void softmax_kernel(Rows rows, Wide<T> factor, Wide<T>* scores, T* probabilities) {
  const auto shared = shared_memory<Wide<T>>();
  const std::int64_t row = blockIdx.x, columns = rows.keys, seen = rows.seen(row);
  Wide<T>* const s = scores + row * columns;
  T* const p = probabilities + row * columns;
  const Wide<T> inverse = 1 / softmax_exponentials(seen, s, factor, s, shared).sum;
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    p[i] = static_cast<T>(i < seen ? s[i] * inverse : Wide<T>{0});
}

/// The probabilities that a forward by cuDNN did not keep, from scores and the logarithm of the sum of exponentials of
/// each row.
template <class T>
__global__ void probabilities_kernel(Rows rows, Wide<T> factor, const Wide<T>* scores, const float* statistics,
                                     T* probabilities) {
  const std::int64_t row = blockIdx.x, columns = rows.keys, seen = rows.seen(row);
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const std::int64_t at = row * columns + i;
    probabilities[at] =
        static_cast<T>(i < seen ? real::exponential(factor * scores[at] - statistics[row]) : Wide<T>{0});
  }
}

/// Turns gradients of probabilities into gradients of Q K^T: scale * p * (d - sum(d * p)).
template <class T>
__global__ void through_softmax_kernel(Rows rows, Wide<T> factor, const T* probabilities, const Wide<T>* gradients,
                                       T* d_scores) {
  const auto shared = shared_memory<Wide<T>>();
  const std::int64_t row = blockIdx.x, columns = rows.keys, seen = rows.seen(row);
  const T* const p = probabilities + row * columns;
  const Wide<T>* const d = gradients + row * columns;
  const Wide<T> along = row_sum<Wide<T>>(seen, shared, [=](std::int64_t i) { return d[i] * p[i]; });
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    d_scores[row * columns + i] = static_cast<T>(factor * p[i] * (d[i] - along));
}

/// Q, K and V of every head of a sample, or their gradients.
struct HeadInputs {
  Matrices q, k, v;
};

/// The matrices of all heads of a sample.
class Heads {
 public:
  Heads(const Device& device, const Operation& op, const Rows& rows, std::int64_t sample)
      : products(device, op, rows.queries, rows.keys), op_(op), rows_(rows), sample_(sample) {}

  /// `keys` has K and V where they are the second input.
  HeadInputs inputs(const real::Tensor& x, const real::Tensor& keys) const {
    const std::int64_t columns = op_.columns, key_columns = products.key_columns(), stride = columns + 2 * key_columns;
    const std::int64_t first = sample_ * rows_.queries * stride, first_k = first + columns;
    const Matrices q = matrices(x, first, stride);
    if (!keys) return {q, matrices(x, first_k, stride), matrices(x, first_k + key_columns, stride)};
    const std::int64_t first_key = sample_ * rows_.keys * 2 * key_columns;
    return {q, matrices(keys, first_key, 2 * key_columns), matrices(keys, first_key + key_columns, 2 * key_columns)};
  }
  Matrices output(const real::Tensor& y) const {
    return matrices(y, sample_ * rows_.queries * op_.columns, op_.columns);
  }
  Matrices square(const void* data, std::int64_t sample, bool is_wide = false) const {
    const std::int64_t numbers = rows_.queries * rows_.keys;
    return {data, sample * op_.heads * numbers, rows_.keys, numbers, false, is_wide};
  }

  const HeadProducts products;

 private:
  Matrices matrices(const real::Tensor& tensor, std::int64_t first, std::int64_t stride) const {
    return {tensor.data, first, stride, products.width(), false};
  }

  const Operation& op_;
  const Rows& rows_;
  std::int64_t sample_;
};

real::Tensor keys_of(const real::Call& call) { return call.inputs.size() > 1 ? call.inputs[1] : real::Tensor{}; }

template <class T>
void forward(const Device& device, const real::Call& call) {
  if constexpr (std::is_same_v<T, Bfloat16>)
    if (is_for_library(call)) return library_attention(device, call);
  const Operation& op = *call.operation;
  const Rows rows(call);
  const std::int64_t all_rows = call.samples * op.heads * rows.queries;
  const WideSquares<T> scores(device, all_rows * rows.keys, numbers<T>(call.saved));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, rows, sample);
    const HeadInputs x = heads.inputs(call.inputs[0], keys_of(call));
    heads.products.scores(x.q, x.k, heads.square(scores.data(), sample, true));
  }
  const unsigned threads = threads_for(rows.keys);
  launch(softmax_kernel<T>, dim3(static_cast<unsigned>(all_rows)), dim3(threads), threads * sizeof(Wide<T>),
         device.stream, rows, scale<Wide<T>>(op), scores.data(), numbers<T>(call.saved));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, rows, sample);
    heads.products.mix(heads.square(call.saved.data, sample), heads.inputs(call.inputs[0], keys_of(call)).v,
                       heads.output(call.output), false);
  }
}

/// Probabilities of all heads of a sample: those that the forward kept, or computed again.
template <class T>
class Probabilities {
 public:
  Probabilities(const Device& device, const real::Call& call, const Rows& rows)
      : device_(device), call_(call), rows_(rows), size_(call.operation->heads * rows.queries * rows.keys) {
    if constexpr (std::is_same_v<T, Bfloat16>) {
      if (!is_for_library(call)) return;
      scores_.emplace(*device.memory, size_);
      again_.emplace(*device.memory, size_);
    }
  }
  Matrices of_sample(std::int64_t sample, const Heads& heads, const HeadInputs& x) const {
    if (!again_) return heads.square(call_.saved.data, sample);
    const std::int64_t rows = call_.operation->heads * rows_.queries;
    heads.products.scores(x.q, x.k, heads.square(scores_->data(), 0, true));
    const float* const statistics = static_cast<const float*>(call_.saved.data) + sample * rows;
    launch(probabilities_kernel<T>, dim3(static_cast<unsigned>(rows)), dim3(threads_for(rows_.keys)), 0, device_.stream,
           rows_, scale<Wide<T>>(*call_.operation), scores_->data(), statistics, again_->data());
    return heads.square(again_->data(), 0);
  }

 private:
  const Device& device_;
  const real::Call& call_;
  const Rows& rows_;
  std::int64_t size_;
  std::optional<Scratch<Wide<T>>> scores_;
  std::optional<Scratch<T>> again_;
};

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  if constexpr (std::is_same_v<T, Bfloat16>)
    if (is_for_library(call) && library_has_gradient(call))
      return library_attention_gradient(device, call, d_output, to);
  const Operation& op = *call.operation;
  const Rows rows(call);
  const real::Gradient keys_apart = d_inputs.size() > 1 ? d_inputs[1] : real::Gradient{};
  // The gradient of keys and values that lie apart comes back later, into the columns that Q leaves.
  if (keys_apart.tensor && !to.add) {
    check(cudaMemsetAsync(to.tensor.data, 0, static_cast<std::size_t>(to.tensor.size()) * sizeof(T), device.stream),
          "cudaMemsetAsync");
    submitted(device.stream, "cudaMemsetAsync");
  }
  const bool add_keys = keys_apart.tensor ? keys_apart.add : to.add;
  const std::int64_t numbers_each = op.heads * rows.queries * rows.keys;
  const Scratch<T> scratch(*device.memory, numbers_each);
  const WideSquares<T> gradients(device, numbers_each, scratch.data());
  const Probabilities<T> probabilities(device, call, rows);
  const unsigned threads = threads_for(rows.keys);
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, rows, sample);
    const HeadInputs x = heads.inputs(call.inputs[0], keys_of(call)), dx = heads.inputs(to.tensor, keys_apart.tensor);
    const Matrices p = probabilities.of_sample(sample, heads, x), d = heads.square(scratch.data(), 0);
    const Matrices dy = heads.output(d_output);
    mix_back<T>(device, heads.products, p, dy, dx.v, add_keys);
    heads.products.scores(dy, x.v, heads.square(gradients.data(), 0, true));
    launch(through_softmax_kernel<T>, dim3(static_cast<unsigned>(op.heads * rows.queries)), dim3(threads),
           threads * sizeof(Wide<T>), device.stream, rows, scale<Wide<T>>(op), static_cast<const T*>(p.base) + p.offset,
           gradients.data(), scratch.data());
    heads.products.mix(d, x.k, dx.q, to.add);
    mix_back<T>(device, heads.products, d, x.q, dx.k, add_keys);
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
