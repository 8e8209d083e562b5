// Convolutions and pooling. For an output of n numbers and a window of k numbers:
//   Conv            2 n k (input channels / groups), and as much for each gradient; a bias goes with the last addition
//   ConvTranspose   2 (numbers of the input) k (output channels / groups), and as much for each gradient
//   pooling         n k forward, one operation for each number of the input backward; max pooling keeps its indices

#include <fmt/core.h>

#include "models/onnx/operator.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;

/// The attribute, which has `count` numbers; without it, the fallback for each, which is also the smallest number.
Shape sizes(const OperatorCall& c, std::string_view name, std::size_t count, std::int64_t fallback) {
  Shape list = c.integers(name);
  if (list.empty()) list.assign(count, fallback);
  if (list.size() != count)
    c.fail(fmt::format("{} has {}, not {}", name, pluralize(std::ssize(list), "number"), count),
           name == "pads" ? "give the padding before each dimension after the channels, then the padding after each"
                          : "give one number for each dimension after the channels");
  for (const std::int64_t size : list)
    if (size < fallback || size > kLargest)
      c.fail(fmt::format("{} has the number {}", name, size),
             fmt::format("use numbers from {} to {}{}", fallback, kLargest,
                         name == "pads" ? "; instead of a negative padding, cut the input with a Slice" : ""));
  return list;
}

/// auto_pad SAME_*: pads so that there is one window per stride; an odd padding has its extra number on one side.
void pad_same(const OperatorCall& c, TensorWindow& w, bool more_before) {
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const std::int64_t size = c.input(0).shape[d + 2], out = (size + w.strides[d] - 1) / w.strides[d];
    const std::int64_t padding =
        std::max<std::int64_t>(0, (out - 1) * w.strides[d] + w.dilations[d] * (w.kernel[d] - 1) + 1 - size);
    w.before[d] = more_before ? padding - padding / 2 : padding / 2;
    w.after[d] = padding - w.before[d];
  }
}

/// Reads kernel_shape (without it, `kernel`), strides, dilations, pads and auto_pad.
TensorWindow read_window(const OperatorCall& c, Shape kernel) {
  if (c.rank(0) < 3)
    c.fail(fmt::format("its input has {}; samples, channels and more are needed",
                       pluralize(static_cast<std::int64_t>(c.rank(0)), "dimension")));
  const std::size_t spatial = c.rank(0) - 2;
  TensorWindow w;
  w.kernel = c.attribute("kernel_shape") ? c.integers("kernel_shape") : std::move(kernel);
  if (w.kernel.size() != spatial)
    c.fail(fmt::format("a window of {} on an input of {}", pluralize(std::ssize(w.kernel), "dimension"),
                       to_text(c.input(0).shape)));
  for (const std::int64_t size : w.kernel)
    if (size < 1 || size > kLargest) c.fail(fmt::format("a window of {}", size));
  for (std::size_t d = 2; d < c.rank(0); ++d)
    if (c.input(0).shape[d] > kLargest) c.fail(fmt::format("its input has a side of {}", c.input(0).shape[d]));
  w.strides = sizes(c, "strides", spatial, 1);
  w.dilations = sizes(c, "dilations", spatial, 1);
  const Shape pads = sizes(c, "pads", 2 * spatial, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(spatial));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(spatial), pads.end());
  const std::string pad = c.text("auto_pad", "NOTSET");
  if (pad == "SAME_UPPER" || pad == "SAME_LOWER")
    pad_same(c, w, pad == "SAME_LOWER");
  else if (pad == "VALID")
    w.before = w.after = Shape(spatial, 0);
  else if (pad != "NOTSET")
    c.fail(fmt::format("auto_pad is '{}'", pad), "write NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  return w;
}

/// The spatial sizes of the output.
Shape slide(const OperatorCall& c, const TensorWindow& w) {
  const bool round_up = c.integer("ceil_mode", 0) != 0;
  Shape spatial;
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const std::int64_t size = c.input(0).shape[d + 2];
    const std::int64_t room = size + w.before[d] + w.after[d] - w.dilations[d] * (w.kernel[d] - 1) - 1;
    if (room < 0)
      c.fail(fmt::format("a window of {} does not fit on {} with {} of padding", to_text(w.kernel),
                         to_text(c.input(0).shape), w.before[d] + w.after[d]),
             "do the sizes given with --set and --batch fit the model?");
    std::int64_t out = (room + (round_up ? w.strides[d] - 1 : 0)) / w.strides[d] + 1;
    // A window that would begin in the padding after the input does not count.
    if (round_up && (out - 1) * w.strides[d] >= size + w.before[d]) --out;
    spatial.push_back(out);
  }
  return spatial;
}

/// samples x channels x spatial sizes.
Shape with_spatial(std::int64_t samples, std::int64_t channels, const Shape& spatial) {
  Shape shape{samples, channels};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

constexpr std::int64_t kMost = 1 << 24;
constexpr std::uint32_t kData = reads_input(0), kWeights = reads_input(1);

OperatorResult convolved(const OperatorCall& c, Tensor y, double work) {
  OperatorResult result{{std::move(y)}, work, {GradientWork{work, kWeights}, GradientWork{work, kData}}};
  if (c.has(2)) result.gradients.emplace_back(GradientWork{});
  return result;
}

std::int64_t groups(const OperatorCall& c, std::int64_t channels) {
  const std::int64_t group = c.integer("group", 1);
  if (group < 1 || channels > kMost || channels % group != 0)
    c.fail(fmt::format("{} of {}", pluralize(group, "group"), pluralize(channels, "channel")),
           fmt::format("use a `group` that divides the channels of the input, which are {} at most", kMost));
  return group;
}

Shape kernel_of(const OperatorCall& c) {
  const Shape& weights = c.input(1).shape;
  if (weights.size() != c.rank(0) || weights.size() < 3)
    c.fail(fmt::format("weights of {} on an input of {}", to_text(weights), to_text(c.input(0).shape)));
  return {weights.begin() + 2, weights.end()};
}

OperatorResult convolution(const OperatorCall& c) {
  const TensorWindow w = read_window(c, kernel_of(c));
  const Shape &x = c.input(0).shape, &weights = c.input(1).shape;
  const std::int64_t group = groups(c, x[1]);
  if (weights[1] != x[1] / group || weights[0] % group != 0)
    c.fail(
        fmt::format("weights of {} on an input of {} in {}", to_text(weights), to_text(x), pluralize(group, "group")),
        "`group` divides the first size of the weights, and their second size is the channels of the input / `group`");
  Tensor y = sized(c, c.input(0).type, with_spatial(x[0], weights[0], slide(c, w)));
  const double work = 2 * y.numbers() * numbers_of(w.kernel) * static_cast<double>(weights[1]);
  return convolved(c, std::move(y), work);
}

Shape paddings(const OperatorCall& c) {
  const Shape extra = c.integers("output_padding");
  for (const std::int64_t size : extra)
    if (size < 0 || size > kMost) c.fail(fmt::format("output_padding has the number {}", size));
  return extra;
}

Shape transposed_sides(const OperatorCall& c, const TensorWindow& w) {
  const Shape given = c.integers("output_shape"), extra = paddings(c);
  const std::string pad = c.text("auto_pad", "NOTSET");
  Shape spatial;
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const std::int64_t size = c.input(0).shape[d + 2];
    std::int64_t out = w.strides[d] * (size - 1) + (d < extra.size() ? extra[d] : 0) +
                       (w.kernel[d] - 1) * w.dilations[d] + 1 - w.before[d] - w.after[d];
    if (pad.starts_with("SAME")) out = size * w.strides[d];
    if (given.size() == w.kernel.size()) out = given[d];
    spatial.push_back(out);
  }
  return spatial;
}

OperatorResult transposed_convolution(const OperatorCall& c) {
  const TensorWindow w = read_window(c, kernel_of(c));
  const Shape &x = c.input(0).shape, &weights = c.input(1).shape;
  const std::int64_t group = groups(c, x[1]);
  if (weights[0] != x[1] || weights[1] > kMost)
    c.fail(fmt::format("weights of {} on an input of {}", to_text(weights), to_text(x)));
  Tensor y = sized(c, c.input(0).type, with_spatial(x[0], weights[1] * group, transposed_sides(c, w)));
  return convolved(c, std::move(y), 2 * c.input(0).numbers() * numbers_of(w.kernel) * static_cast<double>(weights[1]));
}

OperatorResult pooled(const OperatorCall& c, Tensor y, double window, bool largest) {
  OperatorResult result{{y}, window * y.numbers(), {GradientWork{c.input(0).numbers(), 0}}};
  if (largest) result.extra_stash = y.bytes();
  if (c.node.outputs.size() > 1) result.outputs.push_back({Type::Int64, y.shape});
  return result;
}

OperatorResult pool(const OperatorCall& c) {
  const TensorWindow w = read_window(c, {});
  const Shape& x = c.input(0).shape;
  return pooled(c, sized(c, c.input(0).type, with_spatial(x[0], x[1], slide(c, w))), numbers_of(w.kernel),
                c.op.name == "MaxPool");
}

OperatorResult global_pool(const OperatorCall& c) {
  const Shape& x = c.input(0).shape;
  if (x.size() < 3) c.fail(fmt::format("its input is {}; samples, channels and more are needed", to_text(x)));
  Tensor y = sized(c, c.input(0).type, with_spatial(x[0], x[1], Shape(x.size() - 2, 1)));
  const double window = y.numbers() > 0 ? c.input(0).numbers() / y.numbers() : 0;
  return pooled(c, std::move(y), window, c.op.name == "GlobalMaxPool");
}

}  // namespace

TensorWindow window_of(const OperatorCall& c) { return read_window(c, c.op.name == "Conv" ? kernel_of(c) : Shape{}); }

namespace {

const Operator windows_table[] = {
    {"Conv", convolution},          {"ConvTranspose", transposed_convolution}, {"MaxPool", pool}, {"AveragePool", pool},
    {"GlobalMaxPool", global_pool}, {"GlobalAveragePool", global_pool},
};

}  // namespace

Operators windows() { return windows_table; }

}  // namespace stagecraft::onnx
