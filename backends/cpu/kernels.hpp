#pragma once

#include <memory>

#include "backends/real/kernels.hpp"
#include "sim/core/ids.hpp"

namespace stagecraft::cpu {

/// Kernels on Eigen, one thread; `width` is 4 or 8 bytes a number. Not to be used by two threads at once.
std::unique_ptr<real::Kernels> make_kernels(std::size_t width, DeviceId = {});

}  // namespace stagecraft::cpu
