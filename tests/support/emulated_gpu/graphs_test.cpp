// What a capture of the emulated GPU takes, and what ends it.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "backends/cuda/capture.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::graphs_test {

namespace {

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

/// The capture fails for this reason, and the stream takes work afterwards.
void refused(cudaStream_t stream, const char* why, const std::function<void()>& work) {
  CHECK_THROWS_WITH_AS(cuda::Graph(stream, work), doctest::Contains(why), cuda::CudaError);
  int done = 0;
  emulated_gpu::enqueue(stream, [&] { ++done; });
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(done == 1);
}

}  // namespace

TEST_CASE("a wait for an event from outside ends a capture, even when that is over") {
  emulated_gpu::reset();
  cudaStream_t a = new_stream(), b = new_stream();
  const cuda::Event outside;
  outside.record(b);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  refused(a, "cudaErrorStreamCaptureIsolation", [&] { outside.hold_up(a); });
  refused(a, "cudaErrorStreamCaptureInvalidated", [&] {  // Nor does it go on when the error is overlooked.
    CHECK_THROWS_AS(outside.hold_up(a), cuda::CudaError);
  });
}

TEST_CASE("calls that may wait for the device, and the legacy stream, end a capture") {
  emulated_gpu::reset();
  cudaStream_t a = new_stream(), b = new_stream();
  const cuda::Event event;
  event.record(b);
  const cuda::Block block(16);
  int host = 0;
  const std::pair<const char*, std::function<cudaError_t()>> calls[] = {
      {"cudaMalloc",
       [] {
         void* data = nullptr;
         return cudaMalloc(&data, 8);
       }},
      {"cudaHostAlloc",
       [] {
         void* data = nullptr;
         return cudaHostAlloc(&data, 8, 0);
       }},
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(b); }},
      {"cudaStreamQuery", [&] { return cudaStreamQuery(b); }},
      {"cudaEventQuery", [&] { return event.over() ? cudaSuccess : cudaErrorNotReady; }},
      {"cudaMemcpy", [&] { return cudaMemcpy(&host, block.as<int>(), 4, cudaMemcpyDeviceToHost); }},
      {"cudaMemsetAsync", [&] { return cudaMemsetAsync(block.as<int>(), 0, 4, nullptr); }},
  };
  for (const auto& one : calls) {
    CAPTURE(one.first);
    CHECK_THROWS_AS(cuda::Graph(a, [&] { one.second(); }), cuda::CudaError);
    CHECK(cudaStreamSynchronize(a) == cudaSuccess);
    cudaGetLastError();
  }
}

TEST_CASE("only the stream on which a capture began can end it") {
  emulated_gpu::reset();
  cudaStream_t a = new_stream(), b = new_stream();
  const cuda::Event fork;
  REQUIRE(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  fork.record(a);
  fork.hold_up(b);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(b, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorIllegalState);
}

TEST_CASE("arguments are taken at the capture, and work that hangs hangs in a graph too") {
  emulated_gpu::reset();
  cudaStream_t a = new_stream();
  int value = 1, sum = 0;
  const cuda::Graph adds(a, [&] { emulated_gpu::enqueue(a, [&sum, value] { sum += value; }); });
  value = 10;
  adds.upload(a);
  adds.launch(a);
  adds.launch(a);
  REQUIRE(cudaStreamSynchronize(a) == cudaSuccess);
  CHECK(sum == 2);
  const cuda::Graph hangs(a, [&] { emulated_gpu::hang(a); });
  hangs.launch(a);
  for (int i = 0; i < 50; ++i) CHECK(cudaStreamQuery(a) == cudaErrorNotReady);
}

TEST_CASE(
    "of two branches of a graph that wait for others, the second starts when the first is over, whichever that is") {
  std::string orders;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    emulated_gpu::Machine machine;
    machine.seed = seed;
    emulated_gpu::reset(machine);
    cudaStream_t a = new_stream(), b = new_stream();
    std::string begun;
    int over = 0, computed = 0;
    const auto waits = [&](char name) {
      return [&, name] {
        return [&, name, place = std::size_t{0}]() mutable {
          if (place == 0) begun += name, place = begun.size();
          return over >= static_cast<int>(place);
        };
      };
    };
    const cuda::Event fork, join;
    const cuda::Graph graph(a, [&] {
      fork.record(a);
      fork.hold_up(b);
      emulated_gpu::capture_when(a, waits('a'));
      emulated_gpu::capture_when(b, waits('b'));
      emulated_gpu::enqueue(b, [&] { ++computed; });
      join.record(b);
      join.hold_up(a);
    });
    graph.launch(a);
    for (int looks = 0; looks < 20; ++looks) CHECK(cudaStreamQuery(a) == cudaErrorNotReady);
    CHECK(begun.size() == 1);
    over = 1;
    for (int looks = 0; looks < 20; ++looks) CHECK(cudaStreamQuery(a) == cudaErrorNotReady);
    CHECK(begun.size() == 2);
    orders += begun[0];
    over = 2;
    CHECK(cudaStreamSynchronize(a) == cudaSuccess);
    CHECK(computed == 1);
  }
  CHECK(orders.find('a') != std::string::npos);
  CHECK(orders.find('b') != std::string::npos);
}

}  // namespace stagecraft::graphs_test
