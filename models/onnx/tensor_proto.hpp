#pragma once

#include "models/onnx/file.hpp"
#include "models/onnx/wire.hpp"

namespace stagecraft::onnx {

Constant read_tensor(Wire);

}  // namespace stagecraft::onnx
