// Losses and their gradients: cross entropy, also with classes divided over the devices of a group or the ranks of a
// pipeline, and the mean and the sum of squares.

#include <cmath>
#include <type_traits>

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 256, kMostBlocks = 64;

/// -log softmax(x)[t] of each row, and its gradient, softmax(x) - [i = t]. A class that is not known makes both NaN.
/// Which numbers of a row are a thread's, and so the order of sums, does not depend on `kAligned`: whether 16 bytes can
/// be moved at once.
template <bool kAligned, class T>
__global__ void cross_entropy_kernel(std::int64_t columns, double weight, const T* inputs, const Wide<T>* targets,
                                     Wide<T>* gradients, double* losses) {
  using Number = Wide<T>;
  constexpr int kCount = kPacked<T>;
  const auto shared = shared_memory<Number>();
  const std::int64_t row = blockIdx.x;
  const T* const x = inputs + row * columns;
  const Number wanted = targets[row];
  Number* const gradient = gradients + row * columns;
  const auto each_pack = [columns](const auto& step) {
    const std::int64_t apart = static_cast<std::int64_t>(blockDim.x) * kCount;
    for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kCount; i < columns; i += apart)
      if constexpr (kAligned)
        step(i, std::integral_constant<int, kCount>{});
      else
        for (std::int64_t k = i; k < i + kCount && k < columns; ++k) step(k, std::integral_constant<int, 1>{});
  };
  Number mine = -std::numeric_limits<Number>::infinity();
  each_pack([&](std::int64_t i, auto count) {
    const auto scores = load<decltype(count)::value>(x + i);
    for (const T& score : scores.numbers) mine = Larger<Number>{}(mine, score);
  });
  const Number largest = joined(mine, shared, Larger<Number>{});
  mine = 0;
  each_pack([&](std::int64_t i, auto count) {
    const auto scores = load<decltype(count)::value>(x + i);
    Pack<Number, decltype(count)::value> exponentials;
    for (int k = 0; k < decltype(count)::value; ++k) {
      exponentials.numbers[k] = real::exponential(scores.numbers[k] - largest);
      mine += exponentials.numbers[k];
    }
    store<decltype(count)::value>(gradient + i, exponentials);
  });
  const Number sum = joined(mine, shared, Plus<Number>{});
  const bool valid = wanted >= 0 && wanted < static_cast<Number>(columns) && wanted == std::floor(wanted);
  const std::int64_t target = valid ? static_cast<std::int64_t>(wanted) : 0;
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const auto factor = static_cast<Number>(valid ? weight / static_cast<double>(sum) : nothing);
  each_pack([&](std::int64_t i, auto count) {
    auto numbers = load<decltype(count)::value>(gradient + i);
    for (int k = 0; k < decltype(count)::value; ++k)
      numbers.numbers[k] = numbers.numbers[k] * factor - (i + k == target ? static_cast<Number>(weight) : Number{0});
    store<decltype(count)::value>(gradient + i, numbers);
  });
  if (threadIdx.x == 0)
    losses[row] = valid ? std::log(static_cast<double>(sum)) + static_cast<double>(largest - x[target]) : nothing;
}

/// Largest score of each row.
template <class T>
__global__ void divided_largest_kernel(std::int64_t columns, const T* inputs, Wide<T>* largest) {
  using Number = Wide<T>;
  const T* const x = inputs + std::int64_t{blockIdx.x} * columns;
  Number mine = -std::numeric_limits<Number>::infinity();
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) mine = Larger<Number>{}(mine, x[i]);
  const Number row_largest = joined(mine, shared_memory<Number>(), Larger<Number>{});
  if (threadIdx.x == 0) largest[blockIdx.x] = row_largest;
}

/// The classes that are here, from `first` on, of `total`.
struct Classes {
  std::int64_t here = 0, first = 0, total = 0;
  explicit Classes(const real::Call& call)
      : here(call.operation->columns), first(call.first_word), total(call.words > 0 ? call.words : here) {}

  /// A place beyond those that are here for a class that another device has.
  template <class T>
  __device__ std::int64_t place(T target) const {
    const std::int64_t place = static_cast<std::int64_t>(target) - first;
    return place >= 0 && place < here ? place : here;
  }
  template <class T>
  __device__ bool knows(T target) const {
    return target >= 0 && target < static_cast<T>(total) && target == std::floor(target);
  }
};

/// exp(score - largest) and its sum in each row, and the score of the target less the largest, or zero. A class that is
/// not known makes that NaN.
template <class T>
__global__ void divided_sums_kernel(Classes classes, const T* inputs, const Wide<T>* targets, const Wide<T>* largest,
                                    Wide<T>* exponentials, Wide<T>* sums, Wide<T>* scores) {
  using Number = Wide<T>;
  const auto shared = shared_memory<Number>();
  const std::int64_t row = blockIdx.x, columns = classes.here;
  const T* const x = inputs + row * columns;
  Number* const to = exponentials + row * columns;
  const Number sum =
      row_sum<Number>(columns, shared, [=](std::int64_t i) { return to[i] = real::exponential(x[i] - largest[row]); });
  if (threadIdx.x != 0) return;
  sums[row] = sum;
  scores[row] = std::numeric_limits<Number>::quiet_NaN();
  if (!classes.knows(targets[row])) return;
  const std::int64_t place = classes.place(targets[row]);
  scores[row] = place < columns ? x[place] - largest[row] : Number{0};
}

template <class T>
__global__ void divided_gradient_kernel(Classes classes, double weight, const T* targets, const T* sums,
                                        const T* scores, T* gradients, double* losses) {
  const std::int64_t row = blockIdx.x;
  const auto all_classes = static_cast<double>(sums[row]);
  const T factor = static_cast<T>(weight / all_classes);
  const std::int64_t place = classes.knows(targets[row]) ? classes.place(targets[row]) : classes.here;
  T* const gradient = gradients + row * classes.here;
  for (std::int64_t i = threadIdx.x; i < classes.here; i += blockDim.x)
    gradient[i] = gradient[i] * factor - (i == place ? static_cast<T>(weight) : T{0});
  if (threadIdx.x == 0) losses[row] = std::log(all_classes) - static_cast<double>(scores[row]);
}

/// Records of rows, of real::ScoreRecords::columns(width) numbers each.
template <class Number>
struct RecordRows {
  Number* numbers;
  std::int64_t columns, width;

  RecordRows(const real::Tensor& records, std::int64_t record_width)
      : numbers(static_cast<Number*>(records.data)), columns(records.columns), width(record_width) {}
  __device__ Number* statistics(std::int64_t row) const { return numbers + row * columns; }
  __device__ Number* weighted(std::int64_t row) const { return statistics(row) + real::ScoreRecords::kStatistics; }
  __device__ Number* of_target(std::int64_t row) const { return weighted(row) + width; }
};

/// Statistics of the scores that are here, their exponentials, and the weights of the target. A class that is not known
/// makes its score NaN.
template <class T>
__global__ void make_records_kernel(Classes classes, const T* scores, const Wide<T>* targets, const T* weights,
                                    Wide<T>* exponentials, RecordRows<Wide<T>> here) {
  using Number = Wide<T>;
  const std::int64_t row = blockIdx.x, columns = classes.here;
  const T* const x = scores + row * columns;
  const SoftmaxParts<Number> parts =
      softmax_exponentials(columns, x, Number{1}, exponentials + row * columns, shared_memory<Number>());
  const bool knows = classes.knows(targets[row]);
  const std::int64_t place = knows ? classes.place(targets[row]) : columns;
  if (threadIdx.x == 0) {
    Number* const statistics = here.statistics(row);
    statistics[0] = parts.largest, statistics[1] = parts.sum;
    statistics[2] = !knows            ? std::numeric_limits<Number>::quiet_NaN()
                    : place < columns ? static_cast<Number>(x[place])
                                      : Number{0};
  }
  for (std::int64_t i = threadIdx.x; i < here.width; i += blockDim.x)
    here.of_target(row)[i] = place < columns ? static_cast<Number>(weights[place * here.width + i]) : Number{0};
}

/// Joins the softmaxes of two ranks, which are over different words (Milakov and Gimelshein, 2018).
template <class Number>
__global__ void join_records_kernel(RecordRows<Number> from_rows, RecordRows<Number> to_rows) {
  const std::int64_t row = blockIdx.x, width = from_rows.width;
  const Number* const from = from_rows.statistics(row);
  Number* const to = to_rows.statistics(row);
  const Number largest = Larger<Number>{}(from[0], to[0]);
  const Number of_from = std::exp(from[0] - largest), of_to = std::exp(to[0] - largest);
  __syncthreads();
  Number* const weighted = to_rows.weighted(row);
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    weighted[i] = weighted[i] * of_to + from_rows.weighted(row)[i] * of_from;
    to_rows.of_target(row)[i] += from_rows.of_target(row)[i];
  }
  if (threadIdx.x != 0) return;
  to[0] = largest;
  to[1] = to[1] * of_to + from[1] * of_from;
  to[2] += from[2];
}

/// The gradient of the scores, from their exponentials.
template <class Number>
__global__ void scores_gradient_kernel(Classes classes, double weight, const Number* targets, RecordRows<Number> here,
                                       RecordRows<Number> joint, Number* gradients, double* losses) {
  const std::int64_t row = blockIdx.x;
  const Number largest_here = here.statistics(row)[0];
  const Number* const statistics = joint.statistics(row);
  const Number largest = statistics[0], sum = statistics[1];
  const Number factor =
      static_cast<Number>(weight * std::exp(static_cast<double>(largest_here - largest)) / static_cast<double>(sum));
  const std::int64_t place = classes.knows(targets[row]) ? classes.place(targets[row]) : classes.here;
  Number* const gradient = gradients + row * classes.here;
  for (std::int64_t i = threadIdx.x; i < classes.here; i += blockDim.x)
    gradient[i] = gradient[i] * factor - (i == place ? static_cast<Number>(weight) : Number{0});
  if (threadIdx.x == 0) losses[row] = std::log(static_cast<double>(sum)) + static_cast<double>(largest - statistics[2]);
}

/// The gradient of the input of the scores.
template <class T>
__global__ void recorded_gradient_kernel(double weight, RecordRows<Wide<T>> joint, T* gradients) {
  using Number = Wide<T>;
  const std::int64_t row = blockIdx.x;
  const Number of_sum = static_cast<Number>(weight / static_cast<double>(joint.statistics(row)[1]));
  const Number of_target = static_cast<Number>(weight);
  for (std::int64_t i = threadIdx.x; i < joint.width; i += blockDim.x)
    gradients[row * joint.width + i] =
        static_cast<T>(joint.weighted(row)[i] * of_sum - joint.of_target(row)[i] * of_target);
}

/// Sums of squares of y - t, one of each block; and the gradient of their sum, times factor / 2.
template <class T>
__global__ void squares_kernel(std::int64_t count, Wide<T> factor, const T* y, const Wide<T>* t, Wide<T>* gradient,
                               double* losses) {
  const auto shared = shared_memory<double>();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  double mine = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    const Wide<T> difference = y[i] - t[i];
    mine += static_cast<double>(difference) * static_cast<double>(difference);
    gradient[i] = difference * factor;
  }
  const double sum = joined(mine, shared, Plus<double>{});
  if (threadIdx.x == 0) losses[blockIdx.x] = sum;
}

template <class T>
__global__ void weighted_sum_kernel(std::int64_t count, double weight, const double* from, T* to) {
  const double sum = row_sum<double>(count, shared_memory<double>(), [=](std::int64_t i) { return from[i]; });
  if (threadIdx.x == 0) *to = static_cast<T>(weight * sum);
}

template <class T>
void sum_up(const Device& device, std::int64_t count, double weight, const Scratch<double>& losses, T* to) {
  const unsigned threads = threads_for(count);
  launch(weighted_sum_kernel<T>, dim3(1), dim3(threads), threads * sizeof(double), device.stream, count, weight,
         losses.data(), to);
}

template <class T>
void cross_entropy(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const std::int64_t rows = call.samples * op.rows;
  const double weight = call.scale / op.rows;
  const Scratch<double> losses(*device.memory, rows);
  const T* const scores = numbers<T>(call.inputs[0]);
  Wide<T>* const gradients = numbers<Wide<T>>(call.saved);
  const unsigned threads = threads_for((op.columns + kPacked<T> - 1) / kPacked<T>);
  const bool aligned = op.columns % kPacked<T> == 0 && is_aligned(scores) && is_aligned(gradients);
  launch(aligned ? cross_entropy_kernel<true, T> : cross_entropy_kernel<false, T>, dim3(static_cast<unsigned>(rows)),
         dim3(threads), threads * sizeof(Wide<T>), device.stream, std::int64_t{op.columns}, weight, scores,
         numbers<Wide<T>>(call.inputs[1]), gradients, losses.data());
  sum_up(device, rows, weight, losses, numbers<Wide<T>>(call.output));
}

/// weight * sum (y - t)^2, and its gradient.
template <class T>
void squares(const Device& device, const real::Call& call, double weight) {
  const std::int64_t count = call.inputs[0].size();
  const std::int64_t blocks = std::min<std::int64_t>((count + kThreads - 1) / kThreads, kMostBlocks);
  const Scratch<double> losses(*device.memory, blocks);
  launch(squares_kernel<T>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), kThreads * sizeof(double),
         device.stream, count, static_cast<Wide<T>>(2 * weight), numbers<T>(call.inputs[0]),
         numbers<Wide<T>>(call.inputs[1]), numbers<Wide<T>>(call.saved), losses.data());
  sum_up(device, blocks, weight, losses, numbers<Wide<T>>(call.output));
}

template <class T>
void mean_square(const Device& device, const real::Call& call) {
  squares<T>(device, call, call.scale / (static_cast<double>(call.operation->rows) * call.operation->columns));
}

template <class T>
void sum_square(const Device& device, const real::Call& call) {
  squares<T>(device, call, call.scale);
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor&,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (to.tensor)
    put(device, to.add, to.tensor.size(), numbers<T>(to.tensor), At<Wide<T>>{numbers<Wide<T>>(call.saved)});
}

}  // namespace

template <class T>
void divided_cross_entropy(const Device& device, real::DividedLossStep step, const real::Call& call,
                           const real::DividedLoss& rows) {
  const Operation& op = *call.operation;
  const std::int64_t count = call.samples * op.rows;
  const Classes classes(call);
  const dim3 blocks(static_cast<unsigned>(count)), threads(threads_for(op.columns));
  using Number = Wide<T>;
  const std::size_t shared = threads.x * sizeof(Number);
  const T* const x = numbers<T>(call.inputs[0]);
  const Number* const targets = numbers<Number>(call.inputs[1]);
  Number *const saved = numbers<Number>(call.saved), *const largest = numbers<Number>(rows.largest);
  if (step == real::DividedLossStep::Largest)
    return launch(divided_largest_kernel<T>, blocks, threads, shared, device.stream, classes.here, x, largest);
  if (step == real::DividedLossStep::Sums)
    return launch(divided_sums_kernel<T>, blocks, threads, shared, device.stream, classes, x, targets, largest, saved,
                  numbers<Number>(rows.sums), numbers<Number>(rows.targets));
  const double weight = call.scale / op.rows;
  const Scratch<double> losses(*device.memory, count);
  launch(divided_gradient_kernel<Number>, blocks, threads, 0, device.stream, classes, weight, targets,
         numbers<Number>(rows.sums), numbers<Number>(rows.targets), saved, losses.data());
  sum_up(device, count, weight, losses, numbers<Number>(call.output));
}
template void divided_cross_entropy<float>(const Device&, real::DividedLossStep, const real::Call&,
                                           const real::DividedLoss&);
template void divided_cross_entropy<double>(const Device&, real::DividedLossStep, const real::Call&,
                                            const real::DividedLoss&);
template void divided_cross_entropy<Bfloat16>(const Device&, real::DividedLossStep, const real::Call&,
                                              const real::DividedLoss&);

template <class T>
void divided_scores(const Device& device, real::ScoreStep step, const real::Call& call,
                    const real::ScoreRecords& records) {
  using Number = Wide<T>;
  const RecordRows<Number> here(records.here, records.width), joint(records.joint, records.width);
  const bool makes_here = step == real::ScoreStep::Record || step == real::ScoreStep::Gradient;
  const std::int64_t rows = (makes_here ? records.here : records.joint).rows;
  const dim3 blocks(static_cast<unsigned>(rows)), of_width(threads_for(records.width));
  if (step == real::ScoreStep::Join)
    return launch(join_records_kernel<Number>, blocks, of_width, 0, device.stream, here, joint);
  const Operation& op = *call.operation;
  const double weight = call.scale / op.rows;
  if (step == real::ScoreStep::InputGradient)
    return launch(recorded_gradient_kernel<T>, blocks, of_width, 0, device.stream, weight, joint,
                  numbers<T>(call.output));
  const Classes classes(call);
  const dim3 threads(threads_for(op.columns));
  const Number* const targets = numbers<Number>(call.inputs[1]);
  Number* const saved = numbers<Number>(call.saved);
  if (step == real::ScoreStep::Record)
    return launch(make_records_kernel<T>, blocks, threads, threads.x * sizeof(Number), device.stream, classes,
                  numbers<T>(call.inputs[0]), targets, static_cast<const T*>(call.weights), saved, here);
  const Scratch<double> losses(*device.memory, rows);
  launch(scores_gradient_kernel<Number>, blocks, threads, 0, device.stream, classes, weight, targets, here, joint,
         saved, losses.data());
  sum_up(device, rows, weight, losses, numbers<Number>(call.output));
}
template void divided_scores<float>(const Device&, real::ScoreStep, const real::Call&, const real::ScoreRecords&);
template void divided_scores<double>(const Device&, real::ScoreStep, const real::Call&, const real::ScoreRecords&);
template void divided_scores<Bfloat16>(const Device&, real::ScoreStep, const real::Call&, const real::ScoreRecords&);

template <class T>
OperationKernels cross_entropy_kernels() {
  return {cross_entropy<T>, input_gradient<T>, nullptr};
}
template <class T>
OperationKernels mean_square_kernels() {
  return {mean_square<T>, input_gradient<T>, nullptr};
}
template <class T>
OperationKernels sum_square_kernels() {
  return {sum_square<T>, input_gradient<T>, nullptr};
}
template OperationKernels cross_entropy_kernels<float>();
template OperationKernels cross_entropy_kernels<double>();
template OperationKernels cross_entropy_kernels<Bfloat16>();
template OperationKernels mean_square_kernels<float>();
template OperationKernels mean_square_kernels<double>();
template OperationKernels mean_square_kernels<Bfloat16>();
template OperationKernels sum_square_kernels<float>();
template OperationKernels sum_square_kernels<double>();
template OperationKernels sum_square_kernels<Bfloat16>();

}  // namespace stagecraft::cuda
