#pragma once

#include "backends/real/program_executor.hpp"

namespace stagecraft::real {

/// Executes a Program whose devices are all here in the order of its instructions, on the thread of the caller.
Times run_on_one_thread(const Program&, Actions&);

}  // namespace stagecraft::real
