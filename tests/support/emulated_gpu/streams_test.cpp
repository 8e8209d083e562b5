// The emulated GPU keeps what the real one promises, and shows what a program forgets.
#include "tests/support/emulated_gpu/streams.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/partitions.hpp"

namespace stagecraft::streams_test {
using emulated_gpu::Machine;
using emulated_gpu::Order;

namespace {

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

void note(cudaStream_t stream, std::string& text, char letter) {
  emulated_gpu::enqueue(stream, [&text, letter] { text += letter; });
}

const Order kOrders[] = {Order::Random, Order::Rush, Order::Starve};

}  // namespace

TEST_CASE("work of a stream stays in order, that of two is mixed in every way, and events hold it up") {
  std::set<std::string> free, gated;
  for (const Order order : kOrders)
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Machine m;
      m.order = order;
      m.seed = seed;
      for (const bool hold : {false, true}) {
        emulated_gpu::reset(m);
        cudaStream_t a = new_stream(), b = new_stream();
        const cuda::Event done;
        std::string text;
        note(a, text, 'a');
        done.record(a);
        note(a, text, 'A');
        if (hold) done.hold_up(b);
        note(b, text, 'b');
        CHECK(text.empty());
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        (hold ? gated : free).insert(text);
      }
    }
  CHECK(free == std::set<std::string>{"aAb", "abA", "baA"});
  CHECK(gated == std::set<std::string>{"aAb", "abA"});
}

TEST_CASE("a wait for an event that was never recorded does nothing, and one is for what was recorded before it") {
  bool early = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Machine m;
    m.seed = seed;
    emulated_gpu::reset(m);
    cudaStream_t a = new_stream(), b = new_stream();
    const cuda::Event done;
    std::string text;
    done.hold_up(b);
    note(b, text, 'b');
    note(a, text, 'a');
    done.record(a);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    early = early || text == "ba";
  }
  CHECK(early);
}

TEST_CASE("memory is full of NaNs, and use past its end or after it was freed is found") {
  emulated_gpu::reset();
  cudaStream_t s = new_stream();
  void* block = nullptr;
  REQUIRE(cudaMalloc(&block, 64) == cudaSuccess);
  CHECK(std::isnan(static_cast<const double*>(block)[7]));
  CHECK(emulated_gpu::device_bytes() == 64);
  std::vector<char> host(128, 1);
  cudaMemcpyAsync(block, host.data(), 128, cudaMemcpyHostToDevice, s);
  CHECK_THROWS_AS(cudaStreamSynchronize(s), emulated_gpu::Misuse);
  cudaMemcpyAsync(block, host.data(), 64, cudaMemcpyHostToDevice, s);
  REQUIRE(cudaFree(block) == cudaSuccess);
  CHECK(std::isnan(static_cast<const double*>(block)[7]));
  CHECK_THROWS_AS(cudaFree(block), emulated_gpu::Misuse);
  CHECK_THROWS_AS(cudaMemcpyAsync(host.data(), block, 64, cudaMemcpyDeviceToHost, nullptr), emulated_gpu::Misuse);
}

TEST_CASE("pinned memory is read late, pageable memory at once, and sizes beyond the device are refused") {
  emulated_gpu::reset();
  cudaStream_t s = new_stream();
  void *pinned = nullptr, *block = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 8) == cudaSuccess);
  REQUIRE(cudaMalloc(&block, 16) == cudaSuccess);
  double pageable = 1, seen[2] = {0, 0};
  *static_cast<double*>(pinned) = 1;
  cudaMemcpyAsync(block, pinned, 8, cudaMemcpyHostToDevice, s);
  cudaMemcpyAsync(static_cast<double*>(block) + 1, &pageable, 8, cudaMemcpyHostToDevice, s);
  *static_cast<double*>(pinned) = pageable = 2;
  cudaMemcpyAsync(seen, block, 16, cudaMemcpyDeviceToHost, s);
  CHECK(seen[0] == 2);
  CHECK(seen[1] == 1);
  CHECK(cudaMalloc(&block, std::size_t{8} << 30U) == cudaErrorMemoryAllocation);
}

TEST_CASE("the clock: streams run side by side, and an event carries time from one to the other") {
  emulated_gpu::reset();
  cudaStream_t a = new_stream(), b = new_stream();
  const cuda::Event begin(cudaEventDefault), middle(cudaEventDefault), end(cudaEventDefault), plain;
  begin.record(a);
  emulated_gpu::enqueue(
      a, [] {}, 2e-3);
  middle.record(a);
  emulated_gpu::enqueue(
      b, [] {}, 1e-3);
  middle.hold_up(b);
  emulated_gpu::enqueue(
      b, [] {}, 3e-3);
  end.record(b);
  CHECK_THROWS_AS(end.milliseconds_since(begin), cuda::CudaError);  // Not there yet.
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(middle.milliseconds_since(begin) == doctest::Approx(2).epsilon(0.01));
  CHECK(end.milliseconds_since(begin) == doctest::Approx(5).epsilon(0.01));
}

TEST_CASE("graphs are played as often as they are launched, in any order that was captured; forks must join") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Machine m;
    m.seed = seed;
    emulated_gpu::reset(m);
    cudaStream_t a = new_stream(), b = new_stream();
    const cuda::Event fork, join;
    std::string text;
    const cuda::Graph graph(a, [&] {
      fork.record(a);
      fork.hold_up(b);
      note(a, text, 'a');
      note(b, text, 'b');
      join.record(b);
      join.hold_up(a);
      note(a, text, '.');
    });
    graph.launch(a);
    graph.launch(a);
    CHECK(text.empty());
    REQUIRE(cudaStreamSynchronize(a) == cudaSuccess);
    CHECK(text.size() == 6);
    seen.insert(text);
  }
  CHECK(seen == std::set<std::string>{"ab.ab.", "ab.ba.", "ba.ab.", "ba.ba."});
  cudaStream_t a = new_stream(), b = new_stream();
  const cuda::Event fork;
  std::string text;
  const auto unjoined = [&] {
    fork.record(a);
    fork.hold_up(b);
    note(b, text, 'b');
  };
  CHECK_THROWS_AS(cuda::Graph(a, unjoined), cuda::CudaError);
}

TEST_CASE("partitions of GPUs of several sizes") {
  for (const auto& [total, group, groups] :
       {std::tuple{132, 8, 16}, std::tuple{132, 8, 15}, std::tuple{114, 2, 57}, std::tuple{13, 4, 3}}) {
    Machine m;
    m.multiprocessors = total;
    m.group = group;
    m.groups = groups;
    emulated_gpu::reset(m);
    const cuda::Partitions two(0, {2, 1});
    CHECK(two.groups() == static_cast<unsigned>(groups));
    const unsigned each = static_cast<unsigned>(groups / 3 * group);
    CHECK(two.parts()[0].multiprocessors == 2 * each);
    CHECK(two.parts()[1].multiprocessors == each);
    CHECK(two.unused() == static_cast<unsigned>(total) - 3 * each);
    CHECK_THROWS_AS(cuda::Partitions(0, std::vector<unsigned>(static_cast<std::size_t>(groups) + 1, 1)),
                    cuda::CudaError);
  }
  Machine old;
  old.green_contexts = false;
  emulated_gpu::reset(old);
  CHECK_THROWS_AS(cuda::Partitions(0, {1, 1}), cuda::CudaError);
  Machine none;
  none.devices = 0;
  emulated_gpu::reset(none);
  CHECK(cuda::why_no_device() == "no CUDA-capable device is detected");
}

TEST_CASE("work that never ends: asking says that it has not, waiting is a mistake that is found") {
  emulated_gpu::reset();
  cudaStream_t s = new_stream();
  emulated_gpu::hang(s);
  for (int i = 0; i < 100; ++i) CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  CHECK_THROWS_AS(cudaStreamSynchronize(s), emulated_gpu::Misuse);
}

TEST_CASE("a look lets little work go on, and looks that follow at once let more") {
  constexpr int kItems = 10000, kOneByOne = kItems / 7;  // Looks, if none did more than seven.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Machine m;
    m.seed = seed;
    m.queue = kItems + 1;  // No call blocks: only looks let work go on.
    emulated_gpu::reset(m);
    cudaStream_t s = new_stream();
    int done = 0, looks = 1;
    for (int i = 0; i < kItems; ++i) emulated_gpu::enqueue(s, [&done] { ++done; });
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
    CHECK(done <= 7);
    while (cudaStreamQuery(s) == cudaErrorNotReady) ++looks;
    CHECK(done == kItems);
    CHECK(looks < kOneByOne / 20);
    for (int i = 0; i < kItems; ++i) emulated_gpu::enqueue(s, [&done] { ++done; });
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
    CHECK(done <= kItems + 7);
  }
}

TEST_CASE("streams that share a hardware queue go on in the order of the calls") {
  for (const Order order : kOrders)
    for (const int connections : {0, 1, 2}) {
      Machine m;
      m.order = order;
      m.connections = connections;
      emulated_gpu::reset(m);
      cudaStream_t a = new_stream(), b = new_stream();
      std::string text;
      emulated_gpu::hang(a);
      note(b, text, 'b');
      for (int poll = 0; poll < 30 && text.empty(); ++poll) cudaStreamQuery(b);
      CHECK(text == (connections == 1 ? "" : "b"));
    }
  emulated_gpu::reset();
}

TEST_CASE("a full queue blocks, without end if nothing moves") {
  Machine m;
  m.queue = 4;
  emulated_gpu::reset(m);
  std::string text;
  cudaStream_t stream = new_stream();
  for (int n = 0; n < 4; ++n) note(stream, text, 'a');
  CHECK((text.empty() && emulated_gpu::blocked_calls() == 0));
  note(stream, text, 'a');
  CHECK((text == "a" && emulated_gpu::blocked_calls() == 1));
  emulated_gpu::reset(m);
  stream = new_stream();
  emulated_gpu::hang(stream);
  for (int n = 0; n < 3; ++n) note(stream, text, 'a');
  CHECK_THROWS_AS(note(stream, text, 'a'), emulated_gpu::Misuse);
  emulated_gpu::reset();
}

TEST_CASE("the error of a kernel that crashed is sticky") {
  emulated_gpu::reset();
  {
    cudaStream_t stream = new_stream();
    const cuda::Event event;  // Goes before the machine does, and says nothing although it fails.
    emulated_gpu::crash(stream);
    while (cudaStreamQuery(stream) == cudaErrorNotReady) continue;
    void* data = nullptr;
    std::size_t free = 0, total = 0;
    cudaEvent_t other = nullptr;
    for (const cudaError_t error :
         {cudaGetLastError(), cudaGetLastError(), cudaMalloc(&data, 1), cudaMemGetInfo(&free, &total),
          cudaMemcpy(data, data, 1, cudaMemcpyDeviceToDevice), cudaEventCreate(&other), cudaStreamQuery(stream)})
      CHECK(error == cudaErrorIllegalAddress);
    CHECK_THROWS_WITH(cuda::device_memory(64), doctest::Contains("illegal memory access"));
  }
  emulated_gpu::reset();
}

}  // namespace stagecraft::streams_test
