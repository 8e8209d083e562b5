#pragma once

#include <functional>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {

/// How the host waits for the device: it looks again and again, because who waits inside of the driver for a device
/// that is stuck waits for ever.
using Until = std::function<void(const std::function<bool()>& done)>;

/// So many seconds; then BackendError.
Until at_most(double seconds);
/// Whether all that was enqueued is over.
bool over(cudaStream_t);
/// Waits for some seconds until it is; false: it is stuck, or broken.
bool ended(cudaStream_t) noexcept;

}  // namespace stagecraft::cuda
