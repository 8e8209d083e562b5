#pragma once

#include <time.h>

#include <chrono>
#include <thread>

namespace stagecraft::test {

/// A limit in seconds that only a hang reaches, on any machine and under any load.
constexpr double kHung = 600;

/// Waits until the condition holds. False if that takes so long that it never will.
template <class Condition>
bool comes_true(Condition&& condition) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(kHung)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Tries with a timeout in seconds that doubles until everything else had settled when it expired. How long that takes
/// depends on the machine and its load, so no fixed timeout is long enough.
template <class Attempt>
bool holds_after_some_timeout(Attempt&& attempt) {
  for (double timeout = 0.2; timeout < kHung; timeout *= 2)
    if (attempt(timeout)) return true;
  return false;
}

/// Seconds that this thread has computed, which other work on the machine and a limit of its CPU time do not change.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace stagecraft::test
