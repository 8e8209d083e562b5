// Repeats a measurement on several threads at the same time, with cold caches where an iteration would leave them so.

#include "backends/real/host_runs.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>

#include "backends/real/thread_places.hpp"
#include "sim/core/threads.hpp"

namespace stagecraft::real {

/// What an iteration touches between two updates: weights, gradients and activations, of which there are as many again
/// at least. More than 32 MiB leave nothing of an array in the cache of a core or in its part of a shared one.
std::size_t touched_bytes(const ProfileRequest& request) {
  constexpr double kEnough = 32 << 20;
  return static_cast<std::size_t>(
      std::min(kEnough, 3 * request.workload.parameters * static_cast<double>(width_of(request.workload))));
}

void on_threads(int count, const std::function<void(int thread)>& work) {
  std::vector<std::jthread> threads;
  std::latch decided{1};  // No thread meets the others before it is known that all could be started.
  std::exception_ptr problem;
  bool none_works = false;
  const std::vector<int> places = thread_places(static_cast<std::size_t>(count));  // As in a run.
  std::mutex mutex;  // Guards `problem` once the threads are decided on.
  const auto serve = [&](int t) {
    if (!places.empty()) pin_thread(places[static_cast<std::size_t>(t)]);
    decided.wait();
    if (none_works) return;
    try {
      work(t);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!problem) problem = std::current_exception();
    }
  };
  try {
    threads.reserve(count);
    for (int t = 0; t < count; ++t) threads.push_back(start_thread(t, count, [&serve, t] { serve(t); }));
  } catch (...) {
    problem = std::current_exception(), none_works = true;
  }
  decided.count_down();
  threads.clear();  // Joins them.
  if (problem) std::rethrow_exception(problem);
}

void repeat_together(int count, double seconds, const std::function<void(int thread, bool counts)>& once, int block,
                     const std::function<void()>& let_go) {
  std::barrier together(count);
  std::atomic<bool> more{true}, failed{false};
  const double begin = steady_seconds();
  on_threads(count, [&](int t) {
    std::exception_ptr problem;
    // A thread that fails still meets the others, who would wait for it.
    const auto try_once = [&](bool counts) {
      try {
        if (!failed) once(t, counts);
      } catch (...) {
        if (failed.exchange(true)) return;
        problem = std::current_exception();
        if (let_go) let_go();
      }
    };
    for (int round = 0; more;) {
      together.arrive_and_wait();
      for (const int end = round + block; round < end; ++round) try_once(round >= kWarmUps);
      together.arrive_and_wait();
      const int counted = round - kWarmUps;
      const bool enough = counted >= kMost || (counted >= kFewest && steady_seconds() - begin > seconds);
      if (t == 0 && (enough || failed)) more = false;
      together.arrive_and_wait();
    }
    if (problem) std::rethrow_exception(problem);
  });
}

}  // namespace stagecraft::real
