// Gather, scatter, concatenate and one-hot, which have no arithmetic but read and write memory; and resizing, whose
// interpolation counts. A look-up keeps its indices.

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "models/onnx/operator.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::uint32_t kIndices = reads_input(1);

std::int64_t normalized_index(const OperatorCall& c, double index, std::int64_t size) {
  const std::int64_t signed_index = to_integer(index);
  if (signed_index < -size || signed_index >= size) c.fail(fmt::format("index {} of {}", signed_index, size));
  return signed_index < 0 ? signed_index + size : signed_index;
}

/// If the indices depend on the file alone it selects a part of the data; else it is a look-up, such as an embedding.
OperatorResult gather(const OperatorCall& c) {
  const Shape &x = c.input(0).shape, &indices = c.input(1).shape;
  const std::size_t axis = c.axis(c.integer("axis", 0), x.size());
  const auto position = static_cast<std::ptrdiff_t>(axis);
  Shape shape(x.begin(), x.begin() + position);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + position + 1, x.end());
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  if (c.input(0).values && c.input(1).values)
    fill(y, [&](const Shape& index) {
      const auto first = index.begin() + position, last = first + static_cast<std::ptrdiff_t>(indices.size());
      Shape from(index.begin(), first);
      from.push_back(normalized_index(c, value_at(c.input(1), {first, last}), x[axis]));
      from.insert(from.end(), last, index.end());
      return value_at(c.input(0), from);
    });
  return {.outputs = {std::move(y)}, .gradients = {GradientWork{.reads = kIndices}}, .view = c.input(1).constant};
}

OperatorResult like_indices(const OperatorCall& c) {
  return {.outputs = {sized(c, c.input(0).type, c.input(1).shape)}, .gradients = {GradientWork{.reads = kIndices}}};
}

OperatorResult gather_nd(const OperatorCall& c) {
  const Shape &x = c.input(0).shape, &indices = c.input(1).shape;
  const std::int64_t batch = c.integer("batch_dims", 0);
  const std::int64_t depth = indices.empty() ? 0 : indices.back();
  if (indices.empty() || batch < 0 || depth < 1 || depth > static_cast<std::int64_t>(x.size()) ||
      batch + depth > static_cast<std::int64_t>(x.size()))
    c.fail(fmt::format("indices of {} into {}", to_text(indices), to_text(x)));
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + batch + depth, x.end());
  return {.outputs = {sized(c, c.input(0).type, std::move(shape))}, .gradients = {GradientWork{.reads = kIndices}}};
}

/// Data with some numbers replaced by updates. Gradients flow to both.
OperatorResult scatter(const OperatorCall& c) {
  return {.outputs = {sized(c, c.input(0).type, c.input(0).shape)},
          .gradients = {GradientWork{.reads = kIndices}, {}, GradientWork{.reads = kIndices}}};
}

OperatorResult concat(const OperatorCall& c) {
  Shape shape = c.input(0).shape;
  const std::size_t axis = c.axis(c.integer("axis", 1), shape.size());
  double size = 0;
  bool has_values = true;
  for (std::size_t i = 0; i < c.size(); ++i) {
    Shape other = c.input(i).shape;
    if (other.size() != shape.size()) c.fail(fmt::format("{} and {}", to_text(c.input(0).shape), to_text(other)));
    size += static_cast<double>(std::exchange(other[axis], shape[axis]));
    if (other != shape) c.fail(fmt::format("{} and {}", to_text(c.input(0).shape), to_text(c.input(i).shape)));
    has_values = has_values && c.input(i).values;
  }
  shape[axis] = to_integer(size);
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  if (has_values)
    fill(y, [&](Shape index) {
      std::size_t i = 0;
      for (; index[axis] >= c.input(i).shape[axis]; ++i) index[axis] -= c.input(i).shape[axis];
      return value_at(c.input(i), index);
    });
  OperatorResult result{{std::move(y)}};
  result.gradients.assign(c.size(), GradientWork{});
  return result;
}

OperatorResult one_hot(const OperatorCall& c) {
  Shape shape = c.input(0).shape;
  const std::vector<std::int64_t> depth = c.integer_values(1);
  if (depth.size() != 1) c.fail("its depth is not one number");
  const std::size_t axis = c.axis(c.integer("axis", -1), shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth.front());
  return {.outputs = {sized(c, c.input(2).type, std::move(shape))}};
}

/// Sizes from input `sizes`, else the input's times the scales. Linear and cubic interpolation add 2 and 4 neighbors
/// along each dimension that changes, with a product and a sum each.
OperatorResult resized(const OperatorCall& c, std::size_t scales, std::size_t sizes) {
  const Shape& x = c.input(0).shape;
  const Attribute* old = c.attribute("scales");
  Shape shape = x;
  if (c.has(sizes) && !c.input(sizes).shape.empty() && c.input(sizes).numbers() > 0) {
    shape = c.integer_values(sizes);
  } else {
    const std::vector<double>& by = old ? old->reals : c.values(scales);
    if (by.size() != x.size()) c.fail(fmt::format("{} for {}", pluralize(std::ssize(by), "scale"), to_text(x)));
    for (std::size_t d = 0; d < x.size(); ++d) shape[d] = to_integer(std::floor(static_cast<double>(x[d]) * by[d]));
  }
  if (shape.size() != x.size()) c.fail(fmt::format("{} for {}", pluralize(std::ssize(shape), "size"), to_text(x)));
  const std::string mode = c.text("mode", "nearest");
  const double neighbors = mode == "cubic" ? 4 : mode.find("linear") != std::string::npos ? 2 : 0;
  double work = neighbors > 0 ? 2 : 0;
  for (std::size_t d = 0; d < x.size(); ++d)
    if (shape[d] != x[d] && neighbors > 0) work *= neighbors;
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  work *= y.numbers();
  return {{std::move(y)}, work, {GradientWork{work, 0}}};
}

/// Scales are input 1 in opset 10; since opset 11 that is the region of interest.
OperatorResult resize(const OperatorCall& c) { return c.opset < 11 ? resized(c, 1, 99) : resized(c, 2, 3); }
OperatorResult upsample(const OperatorCall& c) { return resized(c, 1, 99); }

const Operator selections_table[] = {
    {"Gather", gather},      {"GatherElements", like_indices},
    {"GatherND", gather_nd}, {"ScatterElements", scatter},
    {"ScatterND", scatter},  {"Scatter", scatter},
    {"Concat", concat},      {"OneHot", one_hot},
    {"Resize", resize},      {"Upsample", upsample},
};

}  // namespace

Operators selections() { return selections_table; }

}  // namespace stagecraft::onnx
