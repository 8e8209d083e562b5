// When memory may be used again, and which waits are enqueued.
#include <doctest/doctest.h>

#include <vector>

#include "backends/cuda/arena.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::memory_test {
using cuda::Arena;
using cuda::VectorClock;

namespace {

/// An arena over a vector; as large as it is and no larger.
struct Ground {
  std::vector<char> bytes;
  std::size_t given = 0;
  Arena arena;

  explicit Ground(std::size_t size)
      : bytes(size),
        arena(
            [this](std::size_t n) -> void* {
              if (given + n > bytes.size()) return nullptr;
              given += n;
              return bytes.data() + given - n;
            },
            1024) {}
};

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

}  // namespace

TEST_CASE("freed memory goes to work that follows its last use, and to other work only when no memory is left") {
  Ground g(2048);
  const Arena::Taken a = g.arena.take(1000, {});
  CHECK(g.arena.holds(static_cast<char*>(a.data) + 999));
  g.arena.give(a.data, {0, 5});
  CHECK(g.arena.take(1000, {0, 5}).data == a.data);
  g.arena.give(a.data, {0, 6});
  const Arena::Taken other = g.arena.take(1000, {9, 5});
  CHECK(other.data != a.data);
  CHECK(other.from.empty());
  const Arena::Taken again = g.arena.take(1000, {9, 5});
  CHECK(again.data == a.data);
  CHECK(again.from == VectorClock{0, 6});
  CHECK(g.arena.take(1, {}).data == nullptr);
}

TEST_CASE("neighbours grow together, and what is left of them remembers who used them") {
  Ground g(1024);
  void* const a = g.arena.take(256, {}).data;
  void* const b = g.arena.take(256, {}).data;
  void* const c = g.arena.take(512, {}).data;
  CHECK(static_cast<char*>(b) - static_cast<char*>(a) == 256);
  g.arena.give(a, {3, 0});
  g.arena.give(c, {0, 4});
  g.arena.give(b, {0, 0, 5});
  const Arena::Taken whole = g.arena.take(1024, {});
  CHECK(whole.data == a);
  CHECK(whole.from == VectorClock{3, 4, 5});
  g.arena.hold(static_cast<char*>(a) + 100, {7});
  CHECK(g.arena.usable_from(static_cast<char*>(a) + 1000) == VectorClock{7, 4, 5});
  g.arena.give(whole.data, {});
  CHECK(g.arena.take(8, {}).from == VectorClock{7, 4, 5});
  g.arena.forget();
  int mine = 0;
  CHECK_FALSE(g.arena.holds(&mine));
  CHECK_THROWS_AS(g.arena.give(&mine, {}), InternalError);
}

TEST_CASE("memory that is given back does not make unused memory next to it wait") {
  Ground g(4096);
  g.arena.give(g.arena.take(256, {}).data, {7});
  for (int i = 0; i < 3; ++i) CHECK(g.arena.take(256, {}).from.empty());
  CHECK(g.arena.reserved() == 1024);  // One step.
}

TEST_CASE("work that follows nothing gets the memory that has been free longest, and memory does not grow") {
  Ground g(1 << 20);
  CHECK(g.arena.take(512, {}).data);  // Stays.
  constexpr std::size_t kMost = 2 * 1024 + 1024, kPlaces = kMost / 512 - 1;
  for (std::uint32_t n = 1; n <= 100; ++n) {
    const Arena::Taken taken = g.arena.take(512, {});
    if (n <= kPlaces)
      CHECK(taken.from.empty());
    else
      CHECK(taken.from == VectorClock{static_cast<std::uint32_t>(n - kPlaces)});
    g.arena.give(taken.data, {n});
  }
  CHECK(g.arena.reserved() == kMost);
}

TEST_CASE("an arena that may not grow gives what is waited for, and grows only where nothing is free") {
  Ground g(4096);
  g.arena.give(g.arena.take(1024, {}).data, {1});
  g.arena.stop_growing();
  CHECK(g.arena.take(1024, {}).from == VectorClock{1});
  CHECK(g.arena.reserved() == 1024);
  CHECK(g.arena.take(8, {}).from.empty());
  CHECK(g.arena.reserved() == 2048);
}

TEST_CASE("a wait is enqueued once, and not for what is implied by another") {
  emulated_gpu::reset();
  cuda::Queues queues;
  for (int i = 0; i < 3; ++i) queues.add(new_stream(), 0);
  const cuda::Event a, b, c;
  const cuda::Point first = queues.end(0, a);
  queues.wait(1, first);
  queues.wait(1, first);
  CHECK(emulated_gpu::waits() == 1);
  const cuda::Point second = queues.end(1, b);
  queues.wait(2, second);
  queues.wait(2, first);  // Behind it already, through the second queue.
  queues.wait(2, VectorClock{1, 1, 0});
  queues.wait(0, first);
  CHECK(emulated_gpu::waits() == 2);
  CHECK(queues.reached(2) == VectorClock{1, 1, 1});
  CHECK_THROWS_AS(queues.wait(0, cuda::Point{2, 1}), InternalError);  // Not ended: a wait would do nothing.
}

}  // namespace stagecraft::memory_test
