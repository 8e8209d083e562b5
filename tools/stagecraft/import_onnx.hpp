#pragma once

#include <string>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// A model file from an ONNX file: --batch samples, --set NAME=SIZE for open dimensions, --unknown error or zero,
/// --keep-all. Doubts go to stderr.
std::string import_onnx(const Arguments&);

}  // namespace stagecraft
