#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <thread>

#include "backends/cuda/first_run/checks.hpp"
#include "backends/cuda/libraries.hpp"

namespace stagecraft::cuda::first_run {
namespace {

/// Looks again and again: who waits inside of the driver for what hangs waits for ever.
void until(const std::function<bool()>& done) {
  constexpr std::chrono::seconds kPatience{60};  // To connect takes NCCL a few.
  for (const auto begin = std::chrono::steady_clock::now(); !done();
       std::this_thread::sleep_for(std::chrono::microseconds(100)))
    if (std::chrono::steady_clock::now() - begin > kPatience) throw CudaError("nothing has ended for a minute");
}

void wait_for(cudaStream_t stream) {
  until([&] {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
    return state == cudaSuccess;
  });
}

/// A stream and memory of one GPU.
struct Member {
  Member(int g, std::size_t bytes) : gpu(g) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    data = std::make_unique<Block>(bytes);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() { cudaStreamDestroy(stream); }

  int gpu;
  cudaStream_t stream{};
  std::unique_ptr<Block> data;
};

/// A rank for each GPU, all told by this thread, as runs do it. What hangs is aborted.
class Ring {
 public:
  explicit Ring(const std::deque<Member>& members) : members_(members), ranks_(members.size(), nullptr) {
    ncclUniqueId id;
    require(nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = 4;
    config.cgaClusterSize = 0;
    group([&](std::size_t r) {
      check(cudaSetDevice(members_[r].gpu), "cudaSetDevice");
      require(
          nccl_.ncclCommInitRankConfig(&ranks_[r], static_cast<int>(ranks_.size()), id, static_cast<int>(r), &config),
          "ncclCommInitRankConfig");
    });
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    for (const ncclComm_t c : ranks_)
      if (c) nccl_.ncclCommAbort(c);
  }

  void sum(std::size_t count) {
    group([&](std::size_t r) {
      void* const data = members_[r].data->as<void>();
      require(nccl_.ncclAllReduce(data, data, count, ncclFloat32, ncclSum, ranks_[r], members_[r].stream),
              "ncclAllReduce");
    });
    for (const Member& m : members_) wait_for(m.stream);
  }

 private:
  template <class Calls>
  void group(const Calls& calls) {
    require(nccl_.ncclGroupStart(), "ncclGroupStart");
    try {
      for (std::size_t r = 0; r < ranks_.size(); ++r) calls(r);
    } catch (...) {
      nccl_.ncclGroupEnd();
      throw;
    }
    require(nccl_.ncclGroupEnd(), "ncclGroupEnd");
    for (const ncclComm_t c : ranks_) {
      ncclResult_t state = ncclInProgress;
      until([&] {
        require(nccl_.ncclCommGetAsyncError(c, &state), "ncclCommGetAsyncError");
        return state != ncclInProgress;
      });
      require(state, "NCCL");
    }
  }
  void require(ncclResult_t result, const char* what) const {
    if (result != ncclSuccess && result != ncclInProgress)
      throw CudaError(std::string(what) + ": " + nccl_.ncclGetErrorString(result));
  }

  Nccl nccl_;
  const std::deque<Member>& members_;
  std::vector<ncclComm_t> ranks_;
};

/// Numbers whose sum depends on the order, of each GPU others; what all of them hold behind the sum.
std::vector<std::vector<float>> summed(Ring& ring, const std::deque<Member>& members, std::size_t count) {
  std::vector<std::vector<float>> numbers(members.size(), std::vector<float>(count));
  for (std::size_t r = 0; r < members.size(); ++r) {
    for (std::size_t i = 0; i < count; ++i)
      numbers[r][i] = std::sin(static_cast<float>(i * members.size() + r)) * std::exp2(static_cast<float>(i % 17));
    check(cudaMemcpy(members[r].data->as<void>(), numbers[r].data(), count * sizeof(float), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  ring.sum(count);
  for (std::size_t r = 0; r < members.size(); ++r)
    check(cudaMemcpy(numbers[r].data(), members[r].data->as<void>(), count * sizeof(float), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
  return numbers;
}

/// Whether graphs may hold copies between GPUs, which the manual leaves open.
bool captures_peer_copies(const Member& from, const Member& to, std::size_t bytes) {
  check(cudaSetDevice(from.gpu), "cudaSetDevice");
  try {
    const Graph graph(from.stream, [&] {
      check(cudaMemcpyPeerAsync(to.data->as<void>(), to.gpu, from.data->as<void>(), from.gpu, bytes, from.stream),
            "cudaMemcpyPeerAsync");
    });
    graph.launch(from.stream);
    wait_for(from.stream);
    return true;
  } catch (const CudaError&) {
    cudaGetLastError();
    return false;
  }
}

}  // namespace

Json several_gpus() {
  constexpr std::size_t kCount = std::size_t{1} << 20;
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (count < 2) return {{"skipped", "there is one GPU"}};
  std::deque<Member> members;
  for (int g = 0; g < count; ++g) members.emplace_back(g, kCount * sizeof(float));
  Json all{{"gpus", count}, {"captures_peer_copies", captures_peer_copies(members[0], members[1], kCount)}};
  Ring ring(members);
  const auto first = summed(ring, members, kCount);
  all["sum_is_the_same_on_all"] = std::all_of(first.begin(), first.end(), [&](const auto& n) { return n == first[0]; });
  all["sum_repeats_its_bits"] = summed(ring, members, kCount) == first;
  check(cudaSetDevice(0), "cudaSetDevice");
  return all;
}

}  // namespace stagecraft::cuda::first_run
