#pragma once

#include <functional>
#include <memory>

#include "backends/backend.hpp"
#include "backends/real/kernels.hpp"
#include "backends/real/program_executor.hpp"

namespace stagecraft::real {

/// Makes the kernels of one device; `width` is 4 or 8 bytes a number, or kMixedWidth.
using KernelFactory = std::function<std::unique_ptr<Kernels>(std::size_t width, DeviceId)>;

/// Executes a program for real and returns what happened, with losses, versions, memory and final weights.
Timeline execute(const Program&, const KernelFactory&, const ExecutorOptions&);

/// Executes a program with sleeping in place of computing: messages are real, numbers are not. Devices are as fast as
/// the changes and the jitter of the cluster say, and all takes `dilation` times as long.
Timeline emulate(const Program&, const Cluster&, double dilation, const ExecutorOptions&);

}  // namespace stagecraft::real
