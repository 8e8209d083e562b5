// Convolutions and pooling. For an outcome of n numbers and a window of k numbers:
//   Conv            2 n k (input channels / groups), and as much for each gradient; a bias goes with the last addition
//   ConvTranspose   the same from the other side: 2 (numbers of the input) k (output channels / groups)
//   pooling         n k forward, one operation for each number of the input backward; of a maximum the places are kept

#include <fmt/format.h>

#include "models/onnx/operators/window.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::int64_t kMost = 1 << 24;
constexpr std::uint32_t kData = reads_input(0), kWeights = reads_input(1);

Outcome convolved(const Call& c, Tensor y, double work) {
  Outcome outcome{{std::move(y)}, work, {Gradient{work, kWeights}, Gradient{work, kData}}};
  if (c.has(2)) outcome.gradients.emplace_back(Gradient{});
  return outcome;
}

std::int64_t groups(const Call& c, std::int64_t channels) {
  const std::int64_t group = c.integer("group", 1);
  if (group < 1 || channels > kMost || channels % group != 0)
    c.fail(fmt::format("{} groups of {} channels", group, channels));
  return group;
}

Shape kernel_of(const Call& c) {
  const Shape& weights = c.in(1).shape;
  if (weights.size() != c.rank(0) || weights.size() < 3)
    c.fail(fmt::format("weights of {} on an input of {}", to_text(weights), to_text(c.in(0).shape)));
  return {weights.begin() + 2, weights.end()};
}

Outcome convolution(const Call& c) {
  const Window w = read_window(c, kernel_of(c));
  const Shape &x = c.in(0).shape, &weights = c.in(1).shape;
  const std::int64_t group = groups(c, x[1]);
  if (weights[1] != x[1] / group || weights[0] % group != 0)
    c.fail(fmt::format("weights of {} on an input of {} in {} groups", to_text(weights), to_text(x), group));
  Tensor y = sized(c, c.in(0).type, with_spatial(x[0], weights[0], slide(c, w)));
  const double work = 2 * y.numbers() * w.numbers() * static_cast<double>(weights[1]);
  return convolved(c, std::move(y), work);
}

Shape paddings(const Call& c) {
  const Shape extra = c.integers("output_padding");
  for (const std::int64_t size : extra)
    if (size < 0 || size > kMost) c.fail(fmt::format("output_padding has the number {}", size));
  return extra;
}

Shape transposed_sides(const Call& c, const Window& w) {
  const Shape given = c.integers("output_shape"), extra = paddings(c);
  const std::string pad = c.text("auto_pad", "NOTSET");
  Shape spatial;
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const std::int64_t size = c.in(0).shape[d + 2];
    std::int64_t out = w.strides[d] * (size - 1) + (d < extra.size() ? extra[d] : 0) +
                       (w.kernel[d] - 1) * w.dilations[d] + 1 - w.before[d] - w.after[d];
    if (pad.starts_with("SAME")) out = size * w.strides[d];
    if (given.size() == w.kernel.size()) out = given[d];
    spatial.push_back(out);
  }
  return spatial;
}

Outcome transposed_convolution(const Call& c) {
  const Window w = read_window(c, kernel_of(c));
  const Shape &x = c.in(0).shape, &weights = c.in(1).shape;
  const std::int64_t group = groups(c, x[1]);
  if (weights[0] != x[1] || weights[1] > kMost)
    c.fail(fmt::format("weights of {} on an input of {}", to_text(weights), to_text(x)));
  Tensor y = sized(c, c.in(0).type, with_spatial(x[0], weights[1] * group, transposed_sides(c, w)));
  return convolved(c, std::move(y), 2 * c.in(0).numbers() * w.numbers() * static_cast<double>(weights[1]));
}

Outcome pooled(const Call& c, Tensor y, double window, bool largest) {
  Outcome outcome{{y}, window * y.numbers(), {Gradient{c.in(0).numbers(), 0}}};
  if (largest) outcome.kept = y.bytes();
  if (c.node.outputs.size() > 1) outcome.outputs.push_back({Type::Int64, y.shape});
  return outcome;
}

Outcome pool(const Call& c) {
  const Window w = read_window(c, {});
  const Shape& x = c.in(0).shape;
  return pooled(c, sized(c, c.in(0).type, with_spatial(x[0], x[1], slide(c, w))), w.numbers(), c.op.name == "MaxPool");
}

Outcome global_pool(const Call& c) {
  const Shape& x = c.in(0).shape;
  if (x.size() < 3) c.fail(fmt::format("its input is {}; samples, channels and more are needed", to_text(x)));
  Tensor y = sized(c, c.in(0).type, with_spatial(x[0], x[1], Shape(x.size() - 2, 1)));
  const double window = y.numbers() > 0 ? c.in(0).numbers() / y.numbers() : 0;
  return pooled(c, std::move(y), window, c.op.name == "GlobalMaxPool");
}

const Operator kOperators[] = {
    {"Conv", convolution},          {"ConvTranspose", transposed_convolution}, {"MaxPool", pool}, {"AveragePool", pool},
    {"GlobalMaxPool", global_pool}, {"GlobalAveragePool", global_pool},
};

}  // namespace

Operators windows() { return kOperators; }

}  // namespace stagecraft::onnx
