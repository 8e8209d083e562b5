#include "backends/fluid/finish_queue.hpp"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"

namespace stagecraft::finish_queue_test {

TEST_CASE("whatever is put in, moved and taken out, the soonest comes first") {
  Rng rng(73, "finish queue");
  fluid::FinishQueue queue;
  std::set<std::pair<double, int>> sorted;
  std::vector<double> time_of(64, -1);
  int moved = 0, taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    CHECK(queue.next_time() == (sorted.empty() ? kInfinity : sorted.begin()->first));
    if (rng.integer(0, 3) == 0 && !sorted.empty()) {
      const int flow = queue.pop();
      REQUIRE(flow == sorted.begin()->second);
      sorted.erase(sorted.begin());
      time_of[flow] = -1;
      ++taken;
      continue;
    }
    const int flow = rng.integer(0, 63), time = rng.integer(0, 100);  // many at the same time
    double& old = time_of[flow];
    if (old >= 0) sorted.erase({old, flow}), ++moved;
    old = time;
    sorted.insert({old, flow});
    queue.set(flow, time);
  }
  CHECK(moved > 10'000);
  CHECK(taken > 10'000);
}

}  // namespace stagecraft::finish_queue_test
