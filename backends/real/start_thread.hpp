#pragma once

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

/// Starts one of `wanted` threads. BackendError if the system has no more; the caller ends those that run already.
template <class Work>
void start_thread(std::vector<std::thread>& threads, std::size_t wanted, Work&& work) {
  try {
    threads.emplace_back(std::forward<Work>(work));
  } catch (const std::system_error& e) {
    throw BackendError(
        fmt::format("only {} of {} threads can be started: {}; allow more processes (ulimit -u), or use "
                    "fewer devices",
                    threads.size(), wanted, e.code().message()));
  }
}

}  // namespace stagecraft::real
