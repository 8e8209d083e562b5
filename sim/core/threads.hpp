#pragma once

#include <cstddef>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace stagecraft {

#ifdef __cpp_lib_jthread  // Not in WebAssembly, where nothing starts a thread.
/// A thread that calls `work`. Where the system has no more threads, or no memory for one, the thread is not joinable,
/// and `why` has the reason.
template <class Work>
std::jthread thread_if_possible(Work&& work, std::error_code* why = nullptr) {
  std::error_code reason;
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& e) {
    reason = e.code();
  } catch (const std::bad_alloc&) {
    reason = std::make_error_code(std::errc::not_enough_memory);
  }
  if (why) *why = reason;
  return {};
}

/// One of `needed` threads, of which `running` run already; it calls `work`. BackendError where the system has no more:
/// the caller ends those that run.
std::jthread start_thread(std::size_t running, std::size_t needed, std::function<void()> work);
#endif

/// The number of threads for `asked` ones; 0 asks for one on each core.
int thread_count(int asked);

/// Calls `task` with 0 .. count - 1, on up to `threads` threads: on fewer where the system has no more. After an
/// exception no other task begins; rethrows that of the smallest number that has one.
void run_tasks(int count, int threads, const std::function<void(int)>& task);

}  // namespace stagecraft
