// Which GPUs the processes of a run take.
#include "backends/cuda/ranks/gpu_slots.hpp"

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::gpu_slots_test {
using cuda::GpuInventory;
using Shares = std::vector<std::vector<int>>;

namespace {

GpuInventory inventory(const char* host, std::vector<std::string> gpus, int devices, int nccl = 22809) {
  return {host, std::move(gpus), devices, nccl};
}

}  // namespace

TEST_CASE("no two processes share a GPU: each process has one for each device where there are enough, else one") {
  const std::vector<std::string> four{"a", "b", "c", "d"};
  CHECK(cuda::share_out({inventory("x", four, 1), inventory("x", four, 1)}) == Shares{{0}, {1}});
  CHECK(cuda::share_out({inventory("x", four, 2), inventory("x", four, 2)}) == Shares{{0, 1}, {2, 3}});
  CHECK(cuda::share_out({inventory("x", four, 4), inventory("x", four, 4)}) == Shares{{0}, {1}});
  CHECK(cuda::share_out({inventory("x", {"a", "b"}, 2), inventory("y", {"c", "d"}, 2)}) == Shares{{0, 1}, {0, 1}});
  CHECK(cuda::share_out({inventory("x", four, 2), inventory("y", four, 2)}) ==
        Shares{{0, 1}, {2, 3}});  // Two containers.
  CHECK(cuda::share_out({inventory("x", {"a"}, 1), inventory("x", {"b"}, 1)}) ==
        Shares{{0}, {0}});  // Others are hidden.
  CHECK(cuda::share_out({inventory("x", four, 1), inventory("x", {"a", "c"}, 1)}) == Shares{{0}, {1}});
}

TEST_CASE("a process without a GPU, or with another NCCL, is named") {
  CHECK_THROWS_WITH_AS(cuda::share_out({inventory("x", {"a"}, 1), inventory("x", {"a"}, 1)}),
                       doctest::Contains("process 1 of 2 finds no GPU for itself on x: it sees 1"), BackendError);
  CHECK_THROWS_WITH_AS(cuda::require_same_nccl({inventory("x", {"a"}, 1), inventory("y", {"a"}, 1, 22703)}),
                       doctest::Contains("process 1 of 2 has NCCL 2.27.3, and the first has 2.28.9"), BackendError);
  CHECK_THROWS_WITH_AS(cuda::require_same_nccl({inventory("x", {"a"}, 1), inventory("y", {"a"}, 1, 0)}),
                       doctest::Contains("process 1 of 2 finds no libnccl.so.2"), BackendError);
  CHECK_NOTHROW(cuda::require_same_nccl({inventory("x", {"a"}, 1), inventory("y", {"a"}, 1)}));
}

TEST_CASE("what a process sees, as bytes and back") {
  const GpuInventory s = inventory("somewhere", {"one", std::string("\0\1", 2)}, 3);
  const GpuInventory again = cuda::inventory_from(cuda::to_bytes(s));
  CHECK(again.host == s.host);
  CHECK(again.gpus == s.gpus);
  CHECK(again.devices == 3);
  CHECK(again.nccl == 22809);
}

}  // namespace stagecraft::gpu_slots_test
