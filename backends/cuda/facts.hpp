#pragma once

#include <string>

namespace stagecraft::cuda {

/// What this build and this machine have of CUDA, one line each.
std::string facts();

}  // namespace stagecraft::cuda
