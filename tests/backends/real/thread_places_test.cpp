// Where the threads of a real run stay, and the memory of its messages.
#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "backends/real/buffer_pool.hpp"
#include "backends/real/thread_places.hpp"
#include "sim/core/cores.hpp"

namespace stagecraft::thread_places_test {

TEST_CASE("threads are pinned to processors of their own, or not at all") {
  const std::size_t cores = static_cast<std::size_t>(usable_cores().count());
  setenv("STAGECRAFT_PIN", "1", 1);  // Whatever else runs on this machine.
  for (std::size_t threads = 1; threads <= cores; ++threads) {
    const std::vector<int> places = real::thread_places(threads);
    REQUIRE(places.size() == threads);
    CHECK(std::set<int>(places.begin(), places.end()).size() == threads);
  }
  CHECK(real::thread_places(cores + 1).empty());
  setenv("STAGECRAFT_PIN", "0", 1);
  CHECK(real::thread_places(1).empty());
  unsetenv("STAGECRAFT_PIN");
}

TEST_CASE("a thread that is pinned runs on its processor") {
  const int processor = usable_cores().order.back();
  int seen = -1;
  std::thread([&] {
    real::pin_thread(processor);
    seen = sched_getcpu();
  }).join();
  CHECK(seen == processor);
}

TEST_CASE("buffers are used again, and outlive their pool") {
  std::shared_ptr<char[]> block;
  {
    real::BufferPool pool;
    const std::shared_ptr<char[]> a = pool.take(1000);
    const char* const first = a.get();
    std::shared_ptr<char[]> b = pool.take(1000);
    const char* const second = b.get();
    CHECK(first != second);
    b.reset();
    CHECK(pool.take(1024).get() == second);  // 1000 and 1024 bytes have one size.
    CHECK(pool.take(1025).get() != second);
    block = pool.take(5);
  }
  std::fill_n(block.get(), 5, 'x');
  CHECK(block[4] == 'x');
}

}  // namespace stagecraft::thread_places_test
