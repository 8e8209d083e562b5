// Starts threads with a clear error where the system has no more, and runs numbered tasks on several.

#include "sim/core/threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

#ifdef __cpp_lib_jthread
std::jthread start_thread(std::size_t running, std::size_t needed, std::function<void()> work) {
  std::error_code why;
  std::jthread thread = thread_if_possible(std::move(work), &why);
  if (!thread.joinable())
    throw BackendError(
        fmt::format("only {} of {} threads can be started: {}; allow more processes (ulimit -u), or use "
                    "fewer devices",
                    running, needed, why.message()));
  return thread;
}
#endif

int thread_count(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_tasks(int count, int threads, const std::function<void(int)>& task) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        errors[i] = std::current_exception();
        next = count;  // Tasks with smaller numbers have begun, so the smallest number with an exception is among them.
      }
    }
  };
  {
#ifdef __cpp_lib_jthread
    std::vector<std::jthread> others;
    others.reserve(std::max(0, std::min(threads, count) - 1));
    for (int t = 1; t < std::min(threads, count); ++t) {
      std::jthread other = thread_if_possible(work);
      if (!other.joinable()) break;
      others.push_back(std::move(other));
    }
#else
    static_cast<void>(threads);
#endif
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace stagecraft
