#pragma once

#include <cstddef>
#include <string_view>

#include "sim/model/tensor_operation.hpp"

namespace stagecraft::onnx {

/// The elementwise function of an operator; it is Unknown for others. Greater is Less with its operands swapped.
TensorFunction elementwise_function(std::string_view type);

/// Whether an elementwise operator has any number of operands, of which each two in turn are one operation.
bool is_variadic(std::string_view type);

/// How many operands an elementwise function has.
std::size_t operand_count(TensorFunction);

}  // namespace stagecraft::onnx
