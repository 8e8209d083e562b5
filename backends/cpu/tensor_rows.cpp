// Tensor functions of rows and of channels: softmax and norms.

#include <cmath>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/tensor_functions.hpp"

namespace stagecraft::cpu {
namespace {

/// Calls visit(place) for the first number of each row.
template <class Visit>
void each_row(const TensorOperation& op, Visit&& visit) {
  for (std::int64_t place = 0, end = numbers_of(op.shape); place < end; place += op.length) visit(place);
}

template <class T>
void softmax_value(const TensorCall<T>& call, T* output) {
  const std::int64_t length = call.op.length;
  each_row(call.op, [&](std::int64_t place) {
    T* const y = output + place;
    const T sum = softmax_exponentials(length, call.operands[0] + place, T{1}, y).sum;
    put(false, length, y, [=](std::int64_t i) { return y[i] / sum; });
  });
}

/// y (g - sum of g y).
template <class T>
void softmax_gradient(const TensorCall<T>& call, std::size_t, T* to) {
  const std::int64_t length = call.op.length;
  each_row(call.op, [&](std::int64_t place) {
    const T *const y = call.output + place, *const g = call.d_output + place;
    const T along = sum<T>(length, [=](std::int64_t i) { return g[i] * y[i]; });
    put(true, length, to + place, [=](std::int64_t i) { return y[i] * (g[i] - along); });
  });
}

/// What is subtracted from a row or a channel before it is scaled, and the scale.
template <class T>
struct RowStatistics {
  T mean = 0, inverse = 1;
};

template <class T>
RowStatistics<T> statistics_of(const TensorOperation& op, const T* x) {
  const auto count = static_cast<T>(op.length);
  RowStatistics<T> s;
  if (op.function == TensorFunction::Normalize)
    s.mean = sum<T>(op.length, [x](std::int64_t i) { return x[i]; }) / count;
  const T variance =
      sum<T>(op.length, [x, mean = s.mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  s.inverse = 1 / std::sqrt(variance + static_cast<T>(op.epsilon));
  return s;
}

template <class T>
void norm_value(const TensorCall<T>& call, T* output) {
  each_row(call.op, [&](std::int64_t place) {
    const T* const x = call.operands[0] + place;
    const RowStatistics<T> s = statistics_of(call.op, x);
    put(false, call.op.length, output + place, [=](std::int64_t i) { return (x[i] - s.mean) * s.inverse; });
  });
}

/// The gradient is (g - mean(g) - n mean(g n)) / deviation, where n is the normalized row; mean(g) counts as 0 where no
/// mean is subtracted.
template <class T>
void norm_gradient(const TensorCall<T>& call, std::size_t, T* to) {
  const std::int64_t length = call.op.length;
  const auto count = static_cast<T>(length);
  const bool is_centered = call.op.function == TensorFunction::Normalize;
  each_row(call.op, [&](std::int64_t place) {
    const T *const x = call.operands[0] + place, *const g = call.d_output + place;
    const RowStatistics<T> s = statistics_of(call.op, x);
    const auto normal = [=](std::int64_t i) { return (x[i] - s.mean) * s.inverse; };
    const T mean = is_centered ? sum<T>(length, [=](std::int64_t i) { return g[i]; }) / count : T{0};
    const T along = sum<T>(length, [=](std::int64_t i) { return g[i] * normal(i); }) / count;
    put(true, length, to + place, [=](std::int64_t i) { return s.inverse * (g[i] - mean - normal(i) * along); });
  });
}

// ---------------------------------------------------------------- channels

/// The numbers of a channel: `runs` of `length` numbers, `step` apart.
struct Channels {
  std::int64_t count, runs, length, step;

  template <class T, class Value>
  T total(Value&& value) const {
    T total = 0;
    for (std::int64_t r = 0; r < runs; ++r)
      total += sum<T>(length, [&, first = r * step](std::int64_t i) { return value(first + i); });
    return total;
  }
  template <class T, class Value>
  T mean(Value&& value) const {
    return total<T>(value) / static_cast<T>(runs * length);
  }
  template <class T, class Value>
  void write(bool add, T* to, Value&& value) const {
    for (std::int64_t r = 0; r < runs; ++r)
      put(add, length, to + r * step, [&, first = r * step](std::int64_t i) { return value(first + i); });
  }
};

template <class T>
Channels channels_of(const TensorCall<T>& call) {
  const TensorShape& shape = call.op.shape;
  const std::int64_t count = shape[1], each = numbers_of(shape) / shape[0];
  return {count, call.samples * shape[0], each / count, each};
}

template <class T>
RowStatistics<T> channel_statistics(const TensorCall<T>& call, const Channels& channels, std::int64_t c) {
  const T* const x = call.operands[0] + c * channels.length;
  const bool is_given = call.operands.size() > 2;
  RowStatistics<T> s;
  s.mean = is_given ? call.operands[2][c] : channels.mean<T>([=](std::int64_t i) { return x[i]; });
  const T variance =
      is_given ? call.operands[3][c]
               : channels.mean<T>([=, mean = s.mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  s.inverse = 1 / std::sqrt(variance + static_cast<T>(call.op.epsilon));
  return s;
}

template <class T>
void batch_norm_value(const TensorCall<T>& call, T* output) {
  const Channels channels = channels_of(call);
  for (std::int64_t c = 0; c < channels.count; ++c) {
    const RowStatistics<T> s = channel_statistics(call, channels, c);
    const T* const x = call.operands[0] + c * channels.length;
    channels.write(false, output + c * channels.length,
                   [=, scale = call.operands[1][c] * s.inverse](std::int64_t i) { return (x[i] - s.mean) * scale; });
  }
}

/// The gradient of the scale is sum(g n), where n are the normalized numbers. That of x is the scale times the result
/// of norm_gradient() with statistics of the micro-batch, else the scale times g / deviation.
template <class T>
void batch_norm_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  if (operand > 1) return;
  const Channels channels = channels_of(call);
  for (std::int64_t c = 0; c < channels.count; ++c) {
    const RowStatistics<T> s = channel_statistics(call, channels, c);
    const T *const x = call.operands[0] + c * channels.length, *const g = call.d_output + c * channels.length;
    const auto normal = [=](std::int64_t i) { return (x[i] - s.mean) * s.inverse; };
    const auto slope = [=](std::int64_t i) { return g[i] * normal(i); };
    if (operand == 1) {
      to[c] += channels.total<T>(slope);
      continue;
    }
    const bool is_given = call.operands.size() > 2;
    const T mean = is_given ? T{0} : channels.mean<T>([=](std::int64_t i) { return g[i]; });
    const T along = is_given ? T{0} : channels.mean<T>(slope);
    channels.write(true, to + c * channels.length, [=, scale = call.operands[1][c] * s.inverse](std::int64_t i) {
      return scale * (g[i] - mean - normal(i) * along);
    });
  }
}

}  // namespace

template <class T>
TensorKernels<T> row_kernels(TensorFunction function) {
  switch (function) {
    case TensorFunction::Softmax:
      return {softmax_value<T>, softmax_gradient<T>};
    case TensorFunction::Normalize:
    case TensorFunction::Scale:
      return {norm_value<T>, norm_gradient<T>};
    case TensorFunction::BatchNorm:
      return {batch_norm_value<T>, batch_norm_gradient<T>, true};
    default:
      return {};
  }
}
template TensorKernels<float> row_kernels<float>(TensorFunction);
template TensorKernels<double> row_kernels<double>(TensorFunction);

}  // namespace stagecraft::cpu
