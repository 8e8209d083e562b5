// Convolutions, pooling and batch norms against their definitions, number by number, and their gradients against finite
// differences.

#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "tests/backends/cpu/tensor_case.hpp"

namespace stagecraft::tensor_images_test {
using namespace stagecraft::tensor_test;
using tensor_test::weights;  // Not the namespace stagecraft::weights.

namespace {

using enum TensorFunction;

/// Calls visit(place in the window, place in the array) for each number of the window at `index` that is no padding.
/// The array has the dimensions `from` after its channels.
template <class Visit>
void each_in_window(const TensorWindow& w, const TensorShape& from, const TensorShape& index, Visit&& visit) {
  for (std::int64_t k = 0; k < numbers_of(w.kernel); ++k) {
    const TensorShape within = index_of(k, w.kernel);
    TensorShape at(from.size());
    bool is_inside = true;
    for (std::size_t d = 0; d < from.size(); ++d) {
      at[d] = index[d + 2] * w.strides[d] + within[d] * w.dilations[d] - w.before[d];
      is_inside = is_inside && at[d] >= 0 && at[d] < from[d];
    }
    if (is_inside) visit(k, place_of(from, at));
  }
}

TensorShape spatial(const TensorShape& shape) { return {shape.begin() + 2, shape.end()}; }

Real convolution_at(const TensorOperation& op, const std::vector<Numbers>& x, const TensorShape& index) {
  const TensorShape &a = op.operands[0].shape, &b = op.operands[1].shape, from = spatial(a);
  const std::int64_t first = index[1] / (b[0] / op.groups) * b[1], kernel = numbers_of(op.window.kernel);
  Real sum = 0;
  for (std::int64_t c = 0; c < b[1]; ++c)
    each_in_window(op.window, from, index, [&](std::int64_t k, std::int64_t place) {
      const std::int64_t channel = index[0] * a[1] + first + c;
      sum += x[0][channel * numbers_of(from) + place] * x[1][(index[1] * b[1] + c) * kernel + k];
    });
  return sum;
}

Real pooled_at(const TensorOperation& op, const Numbers& x, const TensorShape& index) {
  const TensorShape& a = op.operands[0].shape;
  const std::int64_t channel = (index[0] * a[1] + index[1]) * numbers_of(spatial(a));
  Real largest = -1000, sum = 0, count = 0;
  each_in_window(op.window, spatial(a), index, [&](std::int64_t, std::int64_t place) {
    largest = std::max(largest, x[channel + place]);
    sum += x[channel + place], ++count;
  });
  if (op.function == MaxPool) return largest;
  return sum / (op.counts_padding ? numbers_of(op.window.kernel) : count);
}

Real channel_norm_at(const TensorOperation& op, const std::vector<Numbers>& x, std::int64_t i) {
  const std::int64_t channel = index_of(i, op.shape)[1];
  Real mean = 0, variance = 0, count = 0;
  const auto each = [&](auto visit) {
    for (std::int64_t j = 0; j < std::ssize(x[0]); ++j)
      if (index_of(j, op.shape)[1] == channel) visit(x[0][j]);
  };
  each([&](Real v) { mean += v, ++count; });
  mean /= count;
  each([&](Real v) { variance += (v - mean) * (v - mean) / count; });
  if (x.size() > 2) mean = x[2][channel], variance = x[3][channel];
  return x[1][channel] * (x[0][i] - mean) / std::sqrt(variance + static_cast<Real>(op.epsilon));
}

Real number_at(const TensorOperation& op, const std::vector<Numbers>& x, std::int64_t i) {
  if (op.function == BatchNorm) return channel_norm_at(op, x, i);
  const TensorShape index = index_of(i, op.shape);
  return op.function == Convolution ? convolution_at(op, x, index) : pooled_at(op, x[0], index);
}

// ---------------------------------------------------------------- cases

TensorOperation channel_norm(TensorShape shape, std::vector<TensorOperand> operands) {
  TensorOperation op = tensor(BatchNorm, std::move(shape), std::move(operands));
  op.epsilon = 0.01;
  return op;
}

TensorOperation convolution(TensorShape shape, TensorOperand x, TensorOperand w, TensorWindow window,
                            std::int64_t groups = 1) {
  TensorOperation op = tensor(Convolution, std::move(shape), {std::move(x), std::move(w)});
  op.window = std::move(window), op.groups = groups;
  return op;
}

TensorOperation pool(TensorFunction f, TensorShape shape, TensorShape from, TensorWindow window,
                     bool counts_padding = false) {
  TensorOperation op = tensor(f, std::move(shape), {input(std::move(from))});
  op.window = std::move(window), op.counts_padding = counts_padding;
  return op;
}

/// Windows in one to three dimensions, with strides, dilations, unequal padding, groups and several leading samples.
std::vector<TensorOperation> cases() {
  const TensorWindow plain{{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, padded{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  const TensorWindow uneven{{2, 3}, {2, 1}, {1, 2}, {1, 0}, {0, 3}}, wide{{5}, {2}, {2}, {4}, {4}};
  const TensorWindow framed{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};  // Some windows lie in the padding alone.
  const TensorWindow point{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      cube{{2, 1, 2}, {1, 2, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}};
  return {
      convolution({1, 4, 3, 4}, input({1, 2, 5, 6}), weights({4, 2, 3, 3}), plain),
      convolution({1, 3, 3, 4}, input({1, 2, 5, 7}), weights({3, 2, 3, 3}), padded),
      convolution({2, 4, 3, 5}, input({2, 4, 5, 6}), weights({4, 2, 2, 3}), uneven, 2),
      convolution({1, 4, 3, 3}, input({1, 4, 5, 5}), weights({4, 1, 3, 3}), plain, 4),
      convolution({1, 6, 3, 3}, input({1, 3, 5, 5}), weights({6, 1, 3, 3}), padded, 3),
      convolution({1, 5, 2, 3}, input({1, 3, 2, 3}), weights({5, 3, 1, 1}), point),
      convolution({1, 2, 5}, input({1, 3, 9}), input({2, 3, 5}), wide),
      convolution({1, 2, 2, 2, 5}, input({1, 2, 3, 3, 4}), weights({2, 2, 2, 1, 2}), cube),
      pool(MaxPool, {1, 2, 3, 4}, {1, 2, 5, 6}, plain),
      pool(MaxPool, {2, 2, 3, 4}, {2, 2, 5, 7}, padded),
      pool(MaxPool, {1, 1, 3, 5}, {1, 1, 5, 6}, uneven),
      pool(AveragePool, {1, 2, 3, 4}, {1, 2, 5, 7}, padded),
      pool(AveragePool, {2, 2, 3, 4}, {2, 2, 5, 7}, padded, true),
      pool(AveragePool, {1, 2, 5}, {1, 2, 9}, wide),
      pool(AveragePool, {1, 2, 4, 5}, {1, 2, 2, 3}, framed, true),
      channel_norm({1, 3, 2, 4}, {input({1, 3, 2, 4}), weights({3, 1, 1})}),
      channel_norm({2, 3, 5}, {input({2, 3, 5}), constant({3, 1}, {0.5, 1, -2})}),
      channel_norm({2, 3, 5},
                   {input({2, 3, 5}), weights({3, 1}), constant({3, 1}, {0.5, -1, 0}), constant({3, 1}, {0.5, 2, 1})}),
  };
}

}  // namespace

TEST_CASE("tensor operations of images are what their definitions say") { check_outputs(cases(), number_at); }

TEST_CASE("gradients of tensor operations of images are finite differences") { check_gradients(cases(), number_at); }

TEST_CASE("gradients of tensor operations of images are added, and equal calls give equal bits") {
  check_added(cases());
}

TEST_CASE("every tensor function of images has a case") {
  CHECK(functions_of(cases()) == std::set<TensorFunction>{BatchNorm, Convolution, MaxPool, AveragePool});
}

}  // namespace stagecraft::tensor_images_test
