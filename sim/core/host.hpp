#pragma once

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Memory of this machine, or container, that the process may still take; infinite when nobody knows.
Bytes free_memory();

}  // namespace stagecraft
