// Operators that count as views, without arithmetic and without anything to keep: reshaping, transposing, slicing,
// splitting, repeating, padding, casts and dropout.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "models/onnx/operator.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

OperatorResult view(std::vector<Tensor> outputs) {
  return {.outputs = std::move(outputs), .gradients = {GradientWork{}}, .view = true};
}

/// A view with another shape; the numbers and their order stay.
OperatorResult reshaped(const OperatorCall& c, Shape shape) {
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  if (y.numbers() != c.input(0).numbers())
    c.fail(fmt::format("{} cannot be read as {}", to_text(c.input(0).shape), to_text(y.shape)),
           "do the sizes given with --set and --batch fit the model?");
  y.values = c.input(0).values;
  return view({std::move(y)});
}

/// Distances between neighbors along each dimension; 0 in an array without numbers.
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 0);
  std::int64_t stride = numbers_of(shape) > 0 ? 1 : 0;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

/// The view whose index i has the number at `offset` + the sum of i_d strides_d.
Tensor strided(const OperatorCall& c, Shape shape, std::int64_t offset, Shape strides) {
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  if (const auto& values = c.input(0).values)
    fill(y, [&](const Shape& index) {
      return values->at(std::inner_product(index.begin(), index.end(), strides.begin(), offset));
    });
  y.offset = offset;
  y.strides = std::move(strides);
  return y;
}

OperatorResult reshape(const OperatorCall& c) {
  Shape shape = c.attribute_or_input("shape", 1).value_or(Shape{});
  const bool zeros = c.integer("allowzero", 0) != 0;
  double given = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !zeros && d < c.rank(0)) shape[d] = c.input(0).shape[d];
    if (shape[d] != -1) given *= static_cast<double>(shape[d]);
  }
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end() && given != 0) *open = to_integer(c.input(0).numbers() / given);
  return reshaped(c, std::move(shape));
}

OperatorResult flatten(const OperatorCall& c) {
  const std::int64_t written = c.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  const std::size_t axis = written == rank ? c.rank(0) : c.axis(written, c.rank(0));
  const Shape& x = c.input(0).shape;
  const Shape front(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  const Shape back(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  return reshaped(c, {to_integer(numbers_of(front)), to_integer(numbers_of(back))});
}

OperatorResult squeeze(const OperatorCall& c) {
  const auto axes = c.attribute_or_input("axes", 1);
  std::vector<bool> removed(c.rank(0), false);
  for (std::size_t d = 0; d < removed.size(); ++d) removed[d] = !axes && c.input(0).shape[d] == 1;
  if (axes)
    for (const std::int64_t axis : *axes) removed[c.axis(axis, c.rank(0))] = true;
  Shape shape;
  for (std::size_t d = 0; d < removed.size(); ++d)
    if (!removed[d]) shape.push_back(c.input(0).shape[d]);
  return reshaped(c, std::move(shape));
}

OperatorResult unsqueeze(const OperatorCall& c) {
  const auto axes = c.attribute_or_input("axes", 1).value_or(Shape{});
  const std::size_t rank = c.rank(0) + axes.size();
  std::vector<bool> inserted(rank, false);
  for (const std::int64_t axis : axes) inserted[c.axis(axis, rank)] = true;
  Shape shape;
  std::size_t next = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!inserted[d] && next == c.rank(0)) c.fail("an axis is named twice");
    shape.push_back(inserted[d] ? 1 : c.input(0).shape[next++]);
  }
  return reshaped(c, std::move(shape));
}

OperatorResult transpose(const OperatorCall& c) {
  Shape order = c.integers("perm");
  if (order.empty()) {
    order.resize(c.rank(0));
    std::iota(order.rbegin(), order.rend(), std::int64_t{0});
  }
  if (order.size() != c.rank(0))
    c.fail(fmt::format("perm has {} numbers, its input is {}", order.size(), to_text(c.input(0).shape)));
  const Shape from = strides_of(c.input(0).shape);
  Shape shape, strides, seen(order.size(), 0);
  for (const std::int64_t axis : order) {
    const std::size_t d = c.axis(axis, order.size());
    if (seen[d]++ != 0) c.fail(fmt::format("perm names the dimension {} twice", d));
    shape.push_back(c.input(0).shape[d]);
    strides.push_back(from[d]);
  }
  return view({strided(c, std::move(shape), 0, std::move(strides))});
}

OperatorResult unchanged(const OperatorCall& c) { return reshaped(c, c.input(0).shape); }

OperatorResult dropout(const OperatorCall& c) {
  OperatorResult result = unchanged(c);
  for (std::size_t i = 1; i < c.node.outputs.size(); ++i) result.outputs.push_back({Type::Bool, c.input(0).shape});
  return result;
}

OperatorResult cast(const OperatorCall& c) {
  OperatorResult result = unchanged(c);
  Tensor& y = result.outputs.front();
  y.type = c.op.name == "CastLike" ? c.input(1).type : static_cast<Type>(c.integer("to", 1));
  if (!y.values || is_float(y.type)) return result;
  for (double& number : *y.values) number = y.type == Type::Bool ? (number != 0 ? 1 : 0) : std::trunc(number);
  return result;
}

struct SliceRange {
  std::int64_t start = 0, step = 1, count = 0;
};

/// A slice as in Python: negative bounds count from the end, and bounds outside are clamped.
SliceRange range_of(const OperatorCall& c, std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) c.fail(fmt::format("a step of {}", step));
  const auto clamped = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high);
  };
  const bool up = step > 0;
  start = clamped(start, 0, std::max<std::int64_t>(0, up ? size : size - 1));
  end = clamped(end, up ? 0 : -1, size);
  const std::int64_t room = up ? end - start : start - end, by = up ? step : -step;
  return {start, step, room <= 0 ? 0 : (room - 1) / by + 1};
}

OperatorResult slice(const OperatorCall& c) {
  const Shape& x = c.input(0).shape;
  const Shape starts = c.attribute_or_input("starts", 1).value_or(Shape{}),
              ends = c.attribute_or_input("ends", 2).value_or(Shape{});
  Shape axes = c.attribute_or_input("axes", 3).value_or(Shape{}),
        steps = c.has(4) ? c.integer_values(4) : Shape(starts.size(), 1);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.fail("starts, ends, axes and steps differ in number");
  std::vector<SliceRange> ranges;
  for (const std::int64_t size : x) ranges.push_back({0, 1, size});
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t d = c.axis(axes[i], x.size());
    ranges[d] = range_of(c, starts[i], ends[i], steps[i], x[d]);
  }
  const Shape from = strides_of(x);
  Shape shape, strides;
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < x.size(); ++d) {
    const SliceRange& range = ranges[d];
    const bool many = range.count > 1;  // The step to the only entry may be larger than any number.
    shape.push_back(range.count);
    strides.push_back(many ? from[d] * range.step : 0);
    offset += range.count > 0 ? from[d] * range.start : 0;
  }
  return view({strided(c, std::move(shape), offset, std::move(strides))});
}

OperatorResult split(const OperatorCall& c) {
  const Shape& x = c.input(0).shape;
  const std::size_t axis = c.axis(c.integer("axis", 0), x.size());
  const auto pieces = static_cast<std::int64_t>(std::max<std::size_t>(1, c.node.outputs.size()));
  Shape sizes = c.attribute_or_input("split", 1).value_or(Shape{});
  const std::int64_t each = (x[axis] + pieces - 1) / pieces;
  for (std::int64_t i = 0, left = x[axis]; sizes.size() < c.node.outputs.size(); ++i, left -= each)
    sizes.push_back(std::clamp<std::int64_t>(left, 0, each));
  if (std::accumulate(sizes.begin(), sizes.end(), 0.0) != static_cast<double>(x[axis]) ||
      sizes.size() != c.node.outputs.size())
    c.fail(fmt::format("a dimension of {} is not {}", x[axis], fmt::join(sizes, " + ")));
  const Shape from = strides_of(x);
  std::vector<Tensor> outputs;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    Shape shape = x;
    shape[axis] = size;
    outputs.push_back(strided(c, std::move(shape), start * from[axis], from));
    start += size;
  }
  return view(std::move(outputs));
}

OperatorResult expand(const OperatorCall& c) {
  const Shape &x = c.input(0).shape, from = strides_of(x);
  Shape shape = broadcast(c, x, c.integer_values(1)), strides(shape.size(), 0);
  for (std::size_t d = 0; d < x.size(); ++d)
    if (x[d] != 1) strides[shape.size() - x.size() + d] = from[d];
  return view({strided(c, std::move(shape), 0, std::move(strides))});
}

OperatorResult tile(const OperatorCall& c) {
  const Shape repeats = c.integer_values(1);
  Shape shape = c.input(0).shape;
  if (repeats.size() != shape.size())
    c.fail(fmt::format("{} for {}", pluralize(std::ssize(repeats), "repeat"), to_text(shape)));
  for (std::size_t d = 0; d < shape.size(); ++d)
    shape[d] = to_integer(static_cast<double>(shape[d]) * static_cast<double>(repeats[d]));
  const Shape& x = c.input(0).shape;
  Tensor y = sized(c, c.input(0).type, std::move(shape));
  if (c.input(0).values)
    fill(y, [&](Shape index) {
      for (std::size_t d = 0; d < x.size(); ++d) index[d] %= x[d];
      return value_at(c.input(0), index);
    });
  return view({std::move(y)});
}

OperatorResult pad(const OperatorCall& c) {
  Shape pads = c.attribute_or_input("pads", 1).value_or(Shape{}), shape = c.input(0).shape;
  const Shape axes = c.has(3) ? c.integer_values(3) : Shape{};
  const std::size_t count = axes.empty() ? shape.size() : axes.size();
  if (pads.size() != 2 * count)
    c.fail(fmt::format("{} for {}", pluralize(std::ssize(pads), "pad"),
                       pluralize(static_cast<std::int64_t>(count), "dimension")));
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& size = shape[axes.empty() ? i : c.axis(axes[i], shape.size())];
    size = to_integer(static_cast<double>(size) + static_cast<double>(pads[i]) + static_cast<double>(pads[count + i]));
  }
  return view({sized(c, c.input(0).type, std::move(shape))});
}

/// Moves blocks of pixels into channels, or back.
OperatorResult blocks(const OperatorCall& c) {
  const std::int64_t side = c.integer("blocksize", 1);
  Shape shape = c.input(0).shape;
  if (shape.size() != 4 || side < 1 || side > (1 << 20))
    c.fail(fmt::format("blocks of {} of {}", side, to_text(shape)));
  if (c.op.name == "DepthToSpace")
    return reshaped(
        c, {shape[0], shape[1] / (side * side), to_integer(static_cast<double>(shape[2]) * static_cast<double>(side)),
            to_integer(static_cast<double>(shape[3]) * static_cast<double>(side))});
  return reshaped(c, {shape[0], to_integer(static_cast<double>(shape[1]) * static_cast<double>(side * side)),
                      shape[2] / side, shape[3] / side});
}

/// Trilu sets the numbers outside of a triangle to zero. Shapes never depend on the result.
OperatorResult triangle(const OperatorCall& c) { return view({sized(c, c.input(0).type, c.input(0).shape)}); }

const Operator views_table[] = {
    {"Reshape", reshape},     {"Flatten", flatten},
    {"Squeeze", squeeze},     {"Unsqueeze", unsqueeze},
    {"Transpose", transpose}, {"Identity", unchanged},
    {"Dropout", dropout},     {"Cast", cast},
    {"CastLike", cast},       {"Slice", slice},
    {"Split", split},         {"Expand", expand},
    {"Tile", tile},           {"Pad", pad},
    {"DepthToSpace", blocks}, {"SpaceToDepth", blocks},
    {"Trilu", triangle},
};

}  // namespace

Operators views() { return views_table; }

}  // namespace stagecraft::onnx
