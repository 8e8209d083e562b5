// Threads that measure together end together, also where one of them fails.

#include <doctest/doctest.h>

#include <atomic>

#include "backends/real/host_runs.hpp"
#include "backends/real/thread_communicator.hpp"

namespace stagecraft::real::host_runs_test {

TEST_CASE("what a thread throws is thrown after all have ended") {
  std::atomic<int> ended{0};
  const auto work = [&](int t) {
    ++ended;
    if (t == 1) throw BackendError("there is no memory");
  };
  CHECK_THROWS_WITH_AS(on_threads(3, work), "there is no memory", BackendError);
  CHECK(ended == 3);
}

TEST_CASE("a thread that fails ends repeated runs, also of those that wait for it in a group") {
  const auto fails = [](int t, bool) {
    if (t == 1) throw BackendError("there is no memory");
  };
  constexpr double kLong = 1000;
  CHECK_THROWS_WITH_AS(repeat_together(3, kLong, fails), "there is no memory", BackendError);
  GroupWaits waits;
  ThreadCommunicator group(2, waits);
  const auto exchanges = [&](int t, bool counts) {
    fails(t, counts);
    group.exchange(t, {}, sizeof(double), [](std::span<const Tensor>) {});
  };
  const auto let_go = [&] {
    waits.interrupted = true;
    group.interrupt();
  };
  CHECK_THROWS_WITH_AS(repeat_together(2, kLong, exchanges, 1, let_go), "there is no memory", BackendError);
}

}  // namespace stagecraft::real::host_runs_test
