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

/// The products of all heads of a sample.
class Heads {
 public:
  Heads(const Device& device, const Operation& op, const Rows& rows, std::int64_t sample)
      : device_(device), op_(op), rows_(rows), sample_(sample) {}

  /// `keys` has K and V where they are an input of their own.
  HeadInputs inputs(const real::Tensor& x, const real::Tensor& keys) const {
    const std::int64_t columns = op_.columns, first = sample_ * rows_.queries * 3 * columns;
    const Matrices q = matrices(x, first, 3 * columns);
    if (!keys) return {q, matrices(x, first + columns, 3 * columns), matrices(x, first + 2 * columns, 3 * columns)};
    const std::int64_t first_key = sample_ * rows_.keys * 2 * columns;
    return {q, matrices(keys, first_key, 2 * columns), matrices(keys, first_key + columns, 2 * columns)};
  }
  Matrices output(const real::Tensor& y) const {
    return matrices(y, sample_ * rows_.queries * op_.columns, op_.columns);
  }
  Matrices square(const void* data, std::int64_t sample, bool is_wide = false) const {
    const std::int64_t numbers = rows_.queries * rows_.keys;
    return {data, sample * op_.heads * numbers, rows_.keys, numbers, false, is_wide};
  }
  /// a b^T of each head: queries x keys.
  void scores(const Matrices& a, const Matrices& b, const Matrices& to) const {
    device_.products->multiply({rows_.queries, rows_.keys, width(), op_.heads}, a, transposed(b), to, false);
  }
  /// s x of each head: queries x width.
  void mix(const Matrices& s, const Matrices& x, const Matrices& to, bool add) const {
    device_.products->multiply({rows_.queries, width(), rows_.keys, op_.heads}, s, x, to, add);
  }
  /// s^T x of each head: keys x width.
  void mix_back(const Matrices& s, const Matrices& x, const Matrices& to, bool add) const {
    device_.products->multiply({rows_.keys, width(), rows_.queries, op_.heads}, transposed(s), x, to, add);
  }

 private:
  static Matrices transposed(Matrices m) {
    m.transposed = true;
    return m;
  }
  Matrices matrices(const real::Tensor& tensor, std::int64_t first, std::int64_t stride) const {
    return {tensor.data, first, stride, width(), false};
  }
  std::int64_t width() const { return op_.columns / op_.heads; }

  const Device& device_;
  const Operation& op_;
  const Rows& rows_;
  std::int64_t sample_;
};

real::Tensor keys_of(const real::Call& call) { return call.inputs.size() > 1 ? call.inputs[1] : real::Tensor{}; }

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
  if constexpr (std::is_same_v<T, Bfloat16>)
    if (is_for_library(call)) return library_attention(device, call);
  const Operation& op = *call.operation;
  const Rows rows(call);
  const std::int64_t all_rows = call.samples * op.heads * rows.queries;
  const WideSquares<T> scores(device, all_rows * rows.keys, numbers<T>(call.saved));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, rows, sample);
    const HeadInputs x = heads.inputs(call.inputs[0], keys_of(call));
    heads.scores(x.q, x.k, heads.square(scores.data(), sample, true));
  }
  const unsigned threads = threads_for(rows.keys);
  launch(softmax_kernel<T>, dim3(static_cast<unsigned>(all_rows)), dim3(threads), threads * sizeof(Wide<T>),
         device.stream, rows, scale<Wide<T>>(op), scores.data(), numbers<T>(call.saved));
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, rows, sample);
    heads.mix(heads.square(call.saved.data, sample), heads.inputs(call.inputs[0], keys_of(call)).v,
              heads.output(call.output), false);
  }
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  if constexpr (std::is_same_v<T, Bfloat16>)
    if (is_for_library(call)) return library_attention_gradient(device, call, d_output, to);
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
  const unsigned threads = threads_for(rows.keys);
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const Heads heads(device, op, rows, sample);
    const HeadInputs x = heads.inputs(call.inputs[0], keys_of(call)), dx = heads.inputs(to.tensor, keys_apart.tensor);
    const Matrices p = heads.square(call.saved.data, sample), d = heads.square(scratch.data(), 0);
    const Matrices dy = heads.output(d_output);
    heads.mix_back(p, dy, dx.v, add_keys);
    heads.scores(dy, x.v, heads.square(gradients.data(), 0, true));
    launch(through_softmax_kernel<T>, dim3(static_cast<unsigned>(op.heads * rows.queries)), dim3(threads),
           threads * sizeof(Wide<T>), device.stream, rows, scale<Wide<T>>(op),
           numbers<T>(call.saved) + sample * numbers_each, gradients.data(), scratch.data());
    heads.mix(d, x.k, dx.q, to.add);
    heads.mix_back(d, x.q, dx.k, add_keys);
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
