#pragma once

#include "models/onnx/operator.hpp"

// The tensor operations of convolutions, pooling and batch norms, of which networks for images consist.

namespace stagecraft::onnx {

/// Whether image_operation() is for this operator.
bool is_image_operator(std::string_view type);

/// The operation of a node whose output has this shape. Its operands are the input of the node, then the weights of a
/// Conv or the scale of a BatchNormalization, then the `operands` that it has already: the mean and the variance of a
/// BatchNormalization that reads both from the file. It is Unknown where no backend computes it, with a name that says
/// why.
TensorOperation image_operation(const OperatorCall&, const Shape& output);

/// The shape of an operand with a number for each channel, which is the second dimension of `shape`.
Shape channel_shape(const Shape& shape);

}  // namespace stagecraft::onnx
