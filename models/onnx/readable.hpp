#pragma once

#include <string>

namespace stagecraft::onnx {

/// A text of the file without what YAML or a terminal would take for something else.
std::string readable(const std::string& text);

}  // namespace stagecraft::onnx
