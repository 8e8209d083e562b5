// Tensor functions of windows that slide over samples x channels x ...: convolutions and pooling.

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/cpu/tensor_functions.hpp"

namespace stagecraft::cpu {
namespace {

/// Where the windows of one channel lie in its numbers: row k has the place of number k of each window, or `kPadding`.
class WindowPlaces {
 public:
  static constexpr std::int64_t kPadding = -1;

  explicit WindowPlaces(const TensorOperation& op)
      : kernel(numbers_of(op.window.kernel)),
        windows(numbers_of(spatial(op.shape))),
        channel(numbers_of(spatial(op.operands.front().shape))),
        places_(static_cast<std::size_t>(kernel * windows)) {
    fill(op, 0, 0, 0, 0);
  }

  const std::int64_t* row(std::int64_t k) const { return places_.data() + k * windows; }

  const std::int64_t kernel, windows, channel;  ///< Numbers of each.

 private:
  static TensorShape spatial(const TensorShape& shape) { return {shape.begin() + 2, shape.end()}; }

  /// Goes on with spatial dimension d from a place that the dimensions before it give.
  void fill(const TensorOperation& op, std::size_t d, std::int64_t k, std::int64_t o, std::int64_t place) {
    const TensorWindow& w = op.window;
    if (d == w.kernel.size()) {
      places_[static_cast<std::size_t>(k * windows + o)] = place;
      return;
    }
    const std::int64_t from = op.operands.front().shape[d + 2], to = op.shape[d + 2];
    for (std::int64_t i = 0; i < w.kernel[d]; ++i)
      for (std::int64_t j = 0; j < to; ++j) {
        const std::int64_t at = j * w.strides[d] + i * w.dilations[d] - w.before[d];
        const bool is_inside = place != kPadding && at >= 0 && at < from;
        fill(op, d + 1, k * w.kernel[d] + i, o * to + j, is_inside ? place * from + at : kPadding);
      }
  }

  std::vector<std::int64_t> places_;
};

// ---------------------------------------------------------------- convolutions

/// Numbers from operand i of one sample of the micro-batch to that of the next. Samples share weights and constants.
std::int64_t sample_step(const TensorOperation& op, std::size_t i) {
  return op.operands[i].source == OperandSource::Input ? numbers_of(op.operands[i].shape) : 0;
}

/// The products of a convolution: for each sample and group, output = weights x columns, where a column has the numbers
/// of one window in all channels of the group. All samples use the same memory of columns.
template <class T>
class ConvolutionProducts {
 public:
  explicit ConvolutionProducts(const TensorCall<T>& call)
      : call_(call),
        places_(call.op),
        outputs_(call.op.shape[1] / call.op.groups),
        inputs_(call.op.operands[1].shape[1]),
        columns_(static_cast<std::size_t>(inner() * places_.windows)) {}

  /// Calls visit(input, weights, output) with the places of each product.
  template <class Visit>
  void each(Visit&& visit) const {
    const std::int64_t groups = call_.op.groups, products = call_.op.shape.front() * groups;
    for (std::int64_t sample = 0; sample < call_.samples; ++sample)
      for (std::int64_t i = 0; i < products; ++i)
        visit(sample * sample_step(call_.op, 0) + i * inputs_ * places_.channel,
              sample * sample_step(call_.op, 1) + i % groups * outputs_ * inner(),
              (sample * products + i) * outputs_ * places_.windows);
  }

  MatrixView<T> columns() { return view(columns_.data(), inner(), places_.windows); }
  template <class U>
  MatrixView<U> weights(U* data) const {
    return view(data, outputs_, inner());
  }
  template <class U>
  MatrixView<U> output(U* data) const {
    return view(data, outputs_, places_.windows);
  }

  void gather(const T* x) {
    each_row([&](std::int64_t channel, const std::int64_t* places, T* column) {
      put(false, places_.windows, column, [=, from = x + channel](std::int64_t o) {
        return places[o] == WindowPlaces::kPadding ? T{0} : from[places[o]];
      });
    });
  }
  void scatter(T* to) {
    each_row([&](std::int64_t channel, const std::int64_t* places, const T* column) {
      for (std::int64_t o = 0; o < places_.windows; ++o)
        if (places[o] != WindowPlaces::kPadding) to[channel + places[o]] += column[o];
    });
  }

 private:
  std::int64_t inner() const { return inputs_ * places_.kernel; }

  /// Calls visit(place of the channel, places in it, row of columns()).
  template <class Visit>
  void each_row(Visit&& visit) {
    for (std::int64_t r = 0; r < inner(); ++r)
      visit(r / places_.kernel * places_.channel, places_.row(r % places_.kernel), columns().row(r));
  }

  const TensorCall<T>& call_;
  WindowPlaces places_;
  std::int64_t outputs_, inputs_;  ///< Channels of a group.
  std::vector<T> columns_;
};

template <class T>
void convolution_value(const TensorCall<T>& call, T* output) {
  ConvolutionProducts<T> products(call);
  products.each([&](std::int64_t from, std::int64_t weights, std::int64_t to) {
    products.gather(call.operands[0] + from);
    multiply<T>(false, products.output(output + to), products.weights(call.operands[1] + weights), products.columns());
  });
}

/// For y = w c: dc = w^T dy, which is added to the numbers that the columns have; dw = dy c^T.
template <class T>
void convolution_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  ConvolutionProducts<T> products(call);
  products.each([&](std::int64_t from, std::int64_t weights, std::int64_t place) {
    const auto dy = products.output(call.d_output + place);
    if (operand == 0) {
      multiply_first_transposed<T>(false, products.columns(), products.weights(call.operands[1] + weights), dy);
      products.scatter(to + from);
      return;
    }
    products.gather(call.operands[0] + from);
    multiply_second_transposed<T>(true, products.weights(to + weights), dy, products.columns());
  });
}

// ---------------------------------------------------------------- pooling

/// Calls visit(place of the channel in the operand, place of its windows in the output).
template <class T, class Visit>
void each_channel(const TensorCall<T>& call, const WindowPlaces& places, Visit&& visit) {
  const std::int64_t channels = call.op.shape[0] * call.op.shape[1];
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t c = 0; c < channels; ++c)
      visit(sample * sample_step(call.op, 0) + c * places.channel, (sample * channels + c) * places.windows);
}

/// The place of the first largest number of window o; what is not a number is larger than all.
template <class T>
std::int64_t largest_place(const WindowPlaces& places, const T* x, std::int64_t o) {
  std::int64_t largest = WindowPlaces::kPadding;
  for (std::int64_t k = 0; k < places.kernel; ++k) {
    const std::int64_t at = places.row(k)[o];
    if (at == WindowPlaces::kPadding) continue;
    const bool is_first = largest == WindowPlaces::kPadding;
    if (is_first || x[at] > x[largest] || (std::isnan(x[at]) && !std::isnan(x[largest]))) largest = at;
  }
  return largest;
}

template <class T>
void max_pool_value(const TensorCall<T>& call, T* output) {
  const WindowPlaces places(call.op);
  each_channel(call, places, [&](std::int64_t from, std::int64_t to) {
    const T* const x = call.operands[0] + from;
    for (std::int64_t o = 0; o < places.windows; ++o) output[to + o] = x[largest_place(places, x, o)];
  });
}

template <class T>
void max_pool_gradient(const TensorCall<T>& call, std::size_t, T* d_operand) {
  const WindowPlaces places(call.op);
  each_channel(call, places, [&](std::int64_t to, std::int64_t from) {
    const T* const x = call.operands[0] + to;
    for (std::int64_t o = 0; o < places.windows; ++o)
      d_operand[to + largest_place(places, x, o)] += call.d_output[from + o];
  });
}

/// One over the numbers of each window.
template <class T>
std::vector<T> shares_of(const TensorOperation& op, const WindowPlaces& places) {
  std::vector<T> shares(static_cast<std::size_t>(places.windows), op.counts_padding ? T(places.kernel) : T{0});
  for (std::int64_t k = 0; k < places.kernel && !op.counts_padding; ++k)
    put(true, places.windows, shares.data(),
        [row = places.row(k)](std::int64_t o) { return T(row[o] == WindowPlaces::kPadding ? 0 : 1); });
  for (T& share : shares) share = 1 / share;
  return shares;
}

/// Calls visit(place in the channel, window, its share) for each number of each window.
template <class T, class Visit>
void each_share(const WindowPlaces& places, const std::vector<T>& shares, Visit&& visit) {
  for (std::int64_t k = 0; k < places.kernel; ++k)
    for (std::int64_t o = 0; o < places.windows; ++o)
      if (const std::int64_t at = places.row(k)[o]; at != WindowPlaces::kPadding) visit(at, o, shares[o]);
}

template <class T>
void average_pool_value(const TensorCall<T>& call, T* output) {
  const WindowPlaces places(call.op);
  const std::vector<T> shares = shares_of<T>(call.op, places);
  std::fill_n(output, call.samples * numbers_of(call.op.shape), T{0});
  each_channel(call, places, [&](std::int64_t from, std::int64_t to) {
    each_share(places, shares,
               [y = output + to, x = call.operands[0] + from](std::int64_t at, std::int64_t o, T share) {
                 y[o] += x[at] * share;
               });
  });
}

template <class T>
void average_pool_gradient(const TensorCall<T>& call, std::size_t, T* d_operand) {
  const WindowPlaces places(call.op);
  const std::vector<T> shares = shares_of<T>(call.op, places);
  each_channel(call, places, [&](std::int64_t to, std::int64_t from) {
    each_share(places, shares,
               [x = d_operand + to, g = call.d_output + from](std::int64_t at, std::int64_t o, T share) {
                 x[at] += g[o] * share;
               });
  });
}

}  // namespace

template <class T>
TensorKernels<T> window_kernels(TensorFunction function) {
  switch (function) {
    case TensorFunction::Convolution:
      return {convolution_value<T>, convolution_gradient<T>, true};
    case TensorFunction::MaxPool:
      return {max_pool_value<T>, max_pool_gradient<T>, true};
    case TensorFunction::AveragePool:
      return {average_pool_value<T>, average_pool_gradient<T>, true};
    default:
      return {};
  }
}
template TensorKernels<float> window_kernels<float>(TensorFunction);
template TensorKernels<double> window_kernels<double>(TensorFunction);

}  // namespace stagecraft::cpu
