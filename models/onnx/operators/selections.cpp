// Gather, scatter, concatenate: no arithmetic, but memory is read and written. A look-up keeps its indices.

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::uint32_t kIndices = reads_input(1);

std::int64_t counted_from_front(const Call& c, double index, std::int64_t size) {
  const std::int64_t at = to_whole(index);
  if (at < -size || at >= size) c.fail(fmt::format("index {} of {}", at, size));
  return at < 0 ? at + size : at;
}

/// If the indices depend on the file alone it selects a part of the data; else it is a look-up, such as an embedding.
Outcome gather(const Call& c) {
  const Shape &x = c.in(0).shape, &indices = c.in(1).shape;
  const std::size_t axis = c.axis(c.integer("axis", 0), x.size());
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Shape shape(x.begin(), x.begin() + at);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + at + 1, x.end());
  Tensor y = sized(c, c.in(0).type, std::move(shape));
  if (c.in(0).values && c.in(1).values)
    fill(y, [&](const Shape& place) {
      const auto first = place.begin() + at, last = first + static_cast<std::ptrdiff_t>(indices.size());
      Shape from(place.begin(), first);
      from.push_back(counted_from_front(c, value_at(c.in(1), {first, last}), x[axis]));
      from.insert(from.end(), last, place.end());
      return value_at(c.in(0), from);
    });
  return {.outputs = {std::move(y)}, .gradients = {Gradient{0, kIndices}}, .view = c.in(1).constant};
}

Outcome like_indices(const Call& c) {
  return {.outputs = {sized(c, c.in(0).type, c.in(1).shape)}, .gradients = {Gradient{0, kIndices}}};
}

Outcome gather_nd(const Call& c) {
  const Shape &x = c.in(0).shape, &indices = c.in(1).shape;
  const std::int64_t batch = c.integer("batch_dims", 0);
  const std::int64_t depth = indices.empty() ? 0 : indices.back();
  if (indices.empty() || batch < 0 || depth < 1 || depth > static_cast<std::int64_t>(x.size()) ||
      batch + depth > static_cast<std::int64_t>(x.size()))
    c.fail(fmt::format("indices of {} into {}", to_text(indices), to_text(x)));
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + batch + depth, x.end());
  return {.outputs = {sized(c, c.in(0).type, std::move(shape))}, .gradients = {Gradient{0, kIndices}}};
}

/// Data with some numbers replaced by updates. Gradients flow to both.
Outcome scatter(const Call& c) {
  return {.outputs = {sized(c, c.in(0).type, c.in(0).shape)},
          .gradients = {Gradient{0, kIndices}, {}, Gradient{0, kIndices}}};
}

Outcome concat(const Call& c) {
  Shape shape = c.in(0).shape;
  const std::size_t axis = c.axis(c.integer("axis", 1), shape.size());
  double size = 0;
  bool known = true;
  for (std::size_t i = 0; i < c.size(); ++i) {
    Shape other = c.in(i).shape;
    if (other.size() != shape.size()) c.fail(fmt::format("{} and {}", to_text(c.in(0).shape), to_text(other)));
    size += static_cast<double>(std::exchange(other[axis], shape[axis]));
    if (other != shape) c.fail(fmt::format("{} and {}", to_text(c.in(0).shape), to_text(c.in(i).shape)));
    known = known && c.in(i).values;
  }
  shape[axis] = to_whole(size);
  Tensor y = sized(c, c.in(0).type, std::move(shape));
  if (known)
    fill(y, [&](Shape place) {
      std::size_t i = 0;
      for (; place[axis] >= c.in(i).shape[axis]; ++i) place[axis] -= c.in(i).shape[axis];
      return value_at(c.in(i), place);
    });
  Outcome outcome{{std::move(y)}};
  outcome.gradients.assign(c.size(), Gradient{});
  return outcome;
}

Outcome one_hot(const Call& c) {
  Shape shape = c.in(0).shape;
  const std::vector<std::int64_t> depth = c.whole(1);
  if (depth.size() != 1) c.fail("its depth is not one number");
  const std::size_t axis = c.axis(c.integer("axis", -1), shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth.front());
  return {.outputs = {sized(c, c.in(2).type, std::move(shape))}};
}

/// Sizes from input `sizes`, else the input's times the scales. Linear and cubic interpolation add 2 and 4 neighbors
/// along each dimension that changes, with a product and a sum each.
Outcome resized(const Call& c, std::size_t scales, std::size_t sizes) {
  const Shape& x = c.in(0).shape;
  const Attribute* old = c.attribute("scales");
  Shape shape = x;
  if (c.has(sizes) && !c.in(sizes).shape.empty() && c.in(sizes).numbers() > 0) {
    shape = c.whole(sizes);
  } else {
    const std::vector<double>& by = old ? old->reals : c.values(scales);
    if (by.size() != x.size()) c.fail(fmt::format("{} scales for {}", by.size(), to_text(x)));
    for (std::size_t d = 0; d < x.size(); ++d) shape[d] = to_whole(std::floor(static_cast<double>(x[d]) * by[d]));
  }
  if (shape.size() != x.size()) c.fail(fmt::format("{} sizes for {}", shape.size(), to_text(x)));
  const std::string mode = c.text("mode", "nearest");
  const double neighbors = mode == "cubic" ? 4 : mode.find("linear") != std::string::npos ? 2 : 0;
  double work = neighbors > 0 ? 2 : 0;
  for (std::size_t d = 0; d < x.size(); ++d)
    if (shape[d] != x[d] && neighbors > 0) work *= neighbors;
  Tensor y = sized(c, c.in(0).type, std::move(shape));
  work *= y.numbers();
  return {{std::move(y)}, work, {Gradient{work, 0}}};
}

/// Scales are input 1 in opset 10; since opset 11 that is the region of interest.
Outcome resize(const Call& c) { return c.opset < 11 ? resized(c, 1, 99) : resized(c, 2, 3); }
Outcome upsample(const Call& c) { return resized(c, 1, 99); }

const Operator kOperators[] = {
    {"Gather", gather},      {"GatherElements", like_indices},
    {"GatherND", gather_nd}, {"ScatterElements", scatter},
    {"ScatterND", scatter},  {"Scatter", scatter},
    {"Concat", concat},      {"OneHot", one_hot},
    {"Resize", resize},      {"Upsample", upsample},
};

}  // namespace

Operators selections() { return kOperators; }

}  // namespace stagecraft::onnx
