#pragma once

#include "sim/program/program.hpp"

namespace stagecraft {

/// Versions, predictions and what reads them. Stages, devices and iterations have been checked before. Throws
/// InternalError for the first broken promise.
void check_weights(const Program&);

}  // namespace stagecraft
