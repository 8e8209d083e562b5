#pragma once

#include <functional>

namespace stagecraft {

/// The number of threads for `asked` ones; 0 asks for one on each core.
int thread_count(int asked);

/// Calls `task` with 0 .. count - 1, on as many threads. Rethrows the exception of the smallest number that has one.
void run_tasks(int count, int threads, const std::function<void(int)>& task);

}  // namespace stagecraft
