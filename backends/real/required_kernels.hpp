#pragma once

#include "sim/model/operation.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft::real {

/// Throws InputError with the first operation of the model for which a backend has no kernel; in mixed precision, which
/// has special kernels, the help names fp32 only where that would run it.
void require_kernels(const Workload&, bool (*has_kernel)(const Operation&), bool (*has_mixed_kernel)(const Operation&));

}  // namespace stagecraft::real
