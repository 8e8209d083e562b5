#pragma once

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {

/// A window that slides over the last dimensions of an input of samples x channels x ..., as convolutions and pooling
/// have it.
struct Window {
  Shape kernel, strides, dilations, before, after;  ///< By spatial dimension; padding before and after.

  double numbers() const { return numbers_of(kernel); }
};

/// From kernel_shape (else `kernel`), strides, dilations, pads and auto_pad.
Window read_window(const Call&, Shape kernel);
/// The spatial sizes that come out.
Shape slide(const Call&, const Window&);

/// Samples, channels, then these.
Shape with_spatial(std::int64_t samples, std::int64_t channels, const Shape& spatial);

}  // namespace stagecraft::onnx
