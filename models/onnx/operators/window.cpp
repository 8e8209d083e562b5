#include "models/onnx/operators/window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::onnx {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;

/// `count` whole numbers from 0 or 1 on, or as many times the fallback.
Shape sizes(const Call& c, std::string_view name, std::size_t count, std::int64_t fallback) {
  Shape list = c.integers(name);
  if (list.empty()) list.assign(count, fallback);
  if (list.size() != count) c.fail(fmt::format("{} has {} numbers, not {}", name, list.size(), count));
  for (const std::int64_t size : list)
    if (size < std::min<std::int64_t>(fallback, 1) || size > kLargest)
      c.fail(fmt::format("{} has the number {}", name, size));
  return list;
}

/// auto_pad SAME_*: as many windows as strides fit, so much padding as that needs, the odd one on one side.
void pad_same(const Call& c, Window& w, bool more_before) {
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const std::int64_t size = c.in(0).shape[d + 2], out = (size + w.strides[d] - 1) / w.strides[d];
    const std::int64_t all =
        std::max<std::int64_t>(0, (out - 1) * w.strides[d] + w.dilations[d] * (w.kernel[d] - 1) + 1 - size);
    w.before[d] = more_before ? all - all / 2 : all / 2;
    w.after[d] = all - w.before[d];
  }
}

}  // namespace

Window read_window(const Call& c, Shape kernel) {
  if (c.rank(0) < 3)
    c.fail(fmt::format("its input has {} dimensions; samples, channels and more are needed", c.rank(0)));
  const std::size_t spatial = c.rank(0) - 2;
  Window w;
  w.kernel = c.attribute("kernel_shape") ? c.integers("kernel_shape") : std::move(kernel);
  if (w.kernel.size() != spatial)
    c.fail(fmt::format("a window of {} dimensions on an input of {}", w.kernel.size(), to_text(c.in(0).shape)));
  for (const std::int64_t size : w.kernel)
    if (size < 1 || size > kLargest) c.fail(fmt::format("a window of {}", size));
  for (std::size_t d = 2; d < c.rank(0); ++d)
    if (c.in(0).shape[d] > kLargest) c.fail(fmt::format("its input has a side of {}", c.in(0).shape[d]));
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

Shape slide(const Call& c, const Window& w) {
  const bool round_up = c.integer("ceil_mode", 0) != 0;
  Shape spatial;
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const std::int64_t size = c.in(0).shape[d + 2];
    const std::int64_t room = size + w.before[d] + w.after[d] - w.dilations[d] * (w.kernel[d] - 1) - 1;
    if (room < 0)
      c.fail(fmt::format("a window of {} does not fit on {} with {} of padding", to_text(w.kernel),
                         to_text(c.in(0).shape), w.before[d] + w.after[d]),
             "do the sizes given with --set and --batch fit the model?");
    std::int64_t out = (room + (round_up ? w.strides[d] - 1 : 0)) / w.strides[d] + 1;
    // A window that would begin in the padding behind the input is left out.
    if (round_up && (out - 1) * w.strides[d] >= size + w.before[d]) --out;
    spatial.push_back(out);
  }
  return spatial;
}

Shape with_spatial(std::int64_t samples, std::int64_t channels, const Shape& spatial) {
  Shape shape{samples, channels};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

}  // namespace stagecraft::onnx
