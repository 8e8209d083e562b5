// Chooses a processor for each thread of a run, a physical core each as far as there are any, and keeps the thread
// there.

#include "backends/real/thread_places.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "sim/core/cores.hpp"

namespace stagecraft::real {
namespace {

/// A look at one moment may meet a thread that runs for a moment only, such as one that prints progress.
bool machine_is_idle() {
  constexpr int kPolls = 4;
  for (int poll = 0; poll < kPolls; ++poll) {
    if (other_runnable_threads() == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

std::vector<int> thread_places(std::size_t threads) {
  const char* const asked = std::getenv("STAGECRAFT_PIN");
  const std::string_view pins = asked ? asked : "";
  const UsableCores cores = usable_cores();
  if (pins == "0" || threads > static_cast<std::size_t>(cores.count())) return {};
  if (pins != "1" && !machine_is_idle()) return {};
  return {cores.order.begin(), cores.order.begin() + static_cast<std::ptrdiff_t>(threads)};
}

void pin_thread(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

}  // namespace stagecraft::real
