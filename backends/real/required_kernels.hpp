#pragma once

#include "sim/model/operation.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft::real {

/// Throws InputError with the first operation of the model for which a backend has no kernel.
void require_kernels(const Workload&, bool (*has_kernel)(const Operation&));

}  // namespace stagecraft::real
