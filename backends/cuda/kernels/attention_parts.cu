// Ring attention: keys and values come part by part from the devices of a context group, and each part rescales the
// softmax so far. Forward and gradients.
#include <cmath>
#include <limits>

#include "backends/cuda/kernels/head_products.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

template <class T>
T score_scale(const Operation& op) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(op.columns / op.heads)));
}

/// The scores of the heads of a sample for one part of the keys; a block has a row of a head.
struct PartRows {
  std::int64_t queries = 0, keys = 0, width = 0, columns = 0;
  std::int64_t first_query = 0, first_key = 0, all_keys = 0;
  bool causal = false, is_first = false;

  PartRows(const real::Call& call, const real::KeyPart& part)
      : queries(call.operation->rows),
        keys(part.keys.rows / call.samples),
        width(call.operation->columns / call.operation->heads),
        columns(call.operation->columns),
        first_query(call.first_row),
        first_key(part.first_row),
        all_keys(part.all_rows),
        causal(call.operation->causal),
        is_first(part.is_first) {}
  /// Keys of this part that a query sees: none, some of the first, or all.
  __device__ std::int64_t seen(std::int64_t query) const {
    const std::int64_t count = (causal ? first_query + query + 1 : all_keys) - first_key;
    return count < 0 ? 0 : count < keys ? count : keys;
  }
  /// Where the numbers of a head begin in a row of the output.
  __device__ std::int64_t in_output(std::int64_t query, std::int64_t head) const {
    return query * columns + head * width;
  }
};

/// The largest score of each row of the heads of a sample, and the sum of exp(score - largest), over the parts so far.
template <class T>
struct Statistics {
  T* numbers = nullptr;
  __device__ T& largest(const PartRows& rows, std::int64_t head, std::int64_t query) const {
    return numbers[head * 2 * rows.queries + query];
  }
  __device__ T& sum(const PartRows& rows, std::int64_t head, std::int64_t query) const {
    return numbers[(head * 2 + 1) * rows.queries + query];
  }
};

/// Makes exp(score - largest) of the scores, which may be done in place, and shrinks what was summed before to the
/// largest score so far.
template <class T>
__global__ void take_in_kernel(PartRows rows, Wide<T> scale, Wide<T>* all_scores, T* exponentials,
                               Statistics<Wide<T>> statistics, Wide<T>* output) {
  using Number = Wide<T>;
  const auto shared = shared_memory<Number>();
  const std::int64_t query = blockIdx.x % rows.queries, head = blockIdx.x / rows.queries, seen = rows.seen(query);
  Number* const scores = all_scores + std::int64_t{blockIdx.x} * rows.keys;
  T* const to = exponentials + std::int64_t{blockIdx.x} * rows.keys;
  Number* const y = output + rows.in_output(query, head);
  const Number before =
      rows.is_first ? -std::numeric_limits<Number>::infinity() : statistics.largest(rows, head, query);
  Number largest = before;
  for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x) largest = Larger<Number>{}(largest, scale * scores[i]);
  largest = joined(largest, shared, Larger<Number>{});
  const Number sum = row_sum<Number>(
      seen, shared, [=](std::int64_t i) { return scores[i] = real::exponential(scale * scores[i] - largest); });
  for (std::int64_t i = threadIdx.x; i < rows.keys; i += blockDim.x)
    to[i] = static_cast<T>(i < seen ? scores[i] : Number{0});
  const Number factor = std::isinf(before) ? Number{0} : real::exponential(before - largest);
  for (std::int64_t i = threadIdx.x; i < rows.width; i += blockDim.x) y[i] = rows.is_first ? Number{0} : factor * y[i];
  if (threadIdx.x != 0) return;
  Number& sum_so_far = statistics.sum(rows, head, query);
  sum_so_far = rows.is_first ? sum : factor * sum_so_far + sum;
  statistics.largest(rows, head, query) = largest;
}

template <class T>
__global__ void divide_kernel(PartRows rows, Statistics<T> statistics, T* output) {
  const std::int64_t query = blockIdx.x % rows.queries, head = blockIdx.x / rows.queries;
  const T inverse = 1 / statistics.sum(rows, head, query);
  T* const y = output + rows.in_output(query, head);
  for (std::int64_t i = threadIdx.x; i < rows.width; i += blockDim.x) y[i] *= inverse;
}

/// Makes probabilities of scores, and gradients of Q K^T of gradients of probabilities; both may be done in place.
template <class T>
__global__ void part_gradient_kernel(PartRows rows, Wide<T> scale, Statistics<Wide<T>> statistics, const T* output,
                                     const T* d_output, const Wide<T>* all_scores, const Wide<T>* all_gradients,
                                     T* probabilities, T* d_scores) {
  using Number = Wide<T>;
  const std::int64_t query = blockIdx.x % rows.queries, head = blockIdx.x / rows.queries, seen = rows.seen(query);
  const std::int64_t first = std::int64_t{blockIdx.x} * rows.keys;
  const T* const y = output + rows.in_output(query, head);
  const T* const dy = d_output + rows.in_output(query, head);
  const Number along =
      row_sum<Number>(rows.width, shared_memory<Number>(), [=](std::int64_t i) { return dy[i] * y[i]; });
  const Number largest = statistics.largest(rows, head, query), inverse = 1 / statistics.sum(rows, head, query);
  for (std::int64_t i = threadIdx.x; i < rows.keys; i += blockDim.x) {
    const Number p = i < seen ? real::exponential(scale * all_scores[first + i] - largest) * inverse : Number{0};
    const Number d = scale * p * (all_gradients[first + i] - along);
    probabilities[first + i] = static_cast<T>(p);
    d_scores[first + i] = static_cast<T>(d);
  }
}

/// The matrices of all heads of a sample: in queries, in keys and values, in the output, and scores.
template <class T>
class PartHeads {
 public:
  PartHeads(const Device& device, const real::Call& call, const PartRows& rows, std::int64_t sample)
      : products(device, *call.operation, rows.queries, rows.keys),
        heads_(call.operation->heads),
        rows_(rows),
        sample_(sample) {}

  Matrices queries(const real::Tensor& x) const { return at(x, rows_.queries, 0); }
  Matrices keys(const real::Tensor& keys) const { return at(keys, rows_.keys, 0); }
  Matrices values(const real::Tensor& keys) const { return at(keys, rows_.keys, products.key_columns()); }
  Matrices output(const real::Tensor& y) const { return at(y, rows_.queries, 0); }
  Matrices scores(const void* data, bool is_wide) const {
    return {data, 0, rows_.keys, rows_.queries * rows_.keys, false, is_wide};
  }
  template <class Number>
  Number* rows_of_output(const real::Tensor& y) const {
    return numbers<Number>(y) + sample_ * rows_.queries * rows_.columns;
  }
  Statistics<Wide<T>> statistics(const real::Tensor& saved) const {
    return {numbers<Wide<T>>(saved) + sample_ * heads_ * 2 * rows_.queries};
  }

  const HeadProducts products;

 private:
  Matrices at(const real::Tensor& tensor, std::int64_t rows, std::int64_t first_column) const {
    return {tensor.data, sample_ * rows * tensor.columns + first_column, tensor.columns, rows_.width, false,
            tensor.is_wide};
  }

  std::int64_t heads_;
  const PartRows& rows_;
  std::int64_t sample_;
};

}  // namespace

template <class T>
void attention_part(const Device& device, const real::Call& call, const real::KeyPart& part) {
  const PartRows rows(call, part);
  const std::int64_t all_rows = call.operation->heads * rows.queries;
  const dim3 blocks(static_cast<unsigned>(all_rows)), threads(threads_for(rows.keys));
  const Scratch<T> scratch(*device.memory, all_rows * rows.keys);
  const WideSquares<T> wide(device, all_rows * rows.keys, scratch.data());
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const PartHeads<T> heads(device, call, rows, sample);
    Wide<T>* const y = heads.template rows_of_output<Wide<T>>(call.output);
    heads.products.scores(heads.queries(call.inputs[0]), heads.keys(part.keys), heads.scores(wide.data(), true));
    launch(take_in_kernel<T>, blocks, threads, threads.x * sizeof(Wide<T>), device.stream, rows,
           score_scale<Wide<T>>(*call.operation), wide.data(), scratch.data(), heads.statistics(call.saved), y);
    heads.products.mix(heads.scores(scratch.data(), false), heads.values(part.keys), heads.output(call.output), true);
    if (part.is_last)
      launch(divide_kernel<Wide<T>>, blocks, threads, 0, device.stream, rows, heads.statistics(call.saved), y);
  }
}

template <class T>
void attention_part_gradient(const Device& device, const real::Call& call, const real::KeyPart& part,
                             const real::Tensor& d_output, const real::Tensor& d_input, const real::Tensor& d_keys) {
  const PartRows rows(call, part);
  const std::int64_t all_rows = call.operation->heads * rows.queries;
  const dim3 blocks(static_cast<unsigned>(all_rows)), threads(threads_for(rows.keys));
  const std::int64_t count = all_rows * rows.keys;
  const Scratch<T> probabilities(*device.memory, count), gradients(*device.memory, count);
  const WideSquares<T> scores(device, count, probabilities.data()), d_probabilities(device, count, gradients.data());
  for (std::int64_t sample = 0; sample < call.samples; ++sample) {
    const PartHeads<T> heads(device, call, rows, sample);
    const Matrices p = heads.scores(probabilities.data(), false), d = heads.scores(gradients.data(), false);
    const Matrices q = heads.queries(call.inputs[0]), k = heads.keys(part.keys), dy = heads.output(d_output);
    heads.products.scores(q, k, heads.scores(scores.data(), true));
    heads.products.scores(dy, heads.values(part.keys), heads.scores(d_probabilities.data(), true));
    launch(part_gradient_kernel<T>, blocks, threads, threads.x * sizeof(Wide<T>), device.stream, rows,
           score_scale<Wide<T>>(*call.operation), heads.statistics(call.saved),
           heads.template rows_of_output<const T>(call.output), heads.template rows_of_output<const T>(d_output),
           scores.data(), d_probabilities.data(), probabilities.data(), gradients.data());
    mix_back<T>(device, heads.products, p, dy, heads.values(d_keys), true);
    heads.products.mix(d, k, heads.queries(d_input), true);
    mix_back<T>(device, heads.products, d, q, heads.keys(d_keys), true);
  }
}

template void attention_part<float>(const Device&, const real::Call&, const real::KeyPart&);
template void attention_part<double>(const Device&, const real::Call&, const real::KeyPart&);
template void attention_part<Bfloat16>(const Device&, const real::Call&, const real::KeyPart&);
template void attention_part_gradient<float>(const Device&, const real::Call&, const real::KeyPart&,
                                             const real::Tensor&, const real::Tensor&, const real::Tensor&);
template void attention_part_gradient<double>(const Device&, const real::Call&, const real::KeyPart&,
                                              const real::Tensor&, const real::Tensor&, const real::Tensor&);
template void attention_part_gradient<Bfloat16>(const Device&, const real::Call&, const real::KeyPart&,
                                                const real::Tensor&, const real::Tensor&, const real::Tensor&);

}  // namespace stagecraft::cuda
