// Checks all GPUs of a machine together: all-reduces by NCCL, and copies between two GPUs in graphs.

#include <cmath>
#include <deque>
#include <memory>
#include <optional>

#include "backends/cuda/first_run/checks.hpp"
#include "backends/cuda/libraries.hpp"

namespace stagecraft::cuda::first_run {
namespace {

constexpr double kPatience = 60;  // Seconds; to connect takes NCCL a few.

void finish(cudaStream_t stream) {
  at_most(kPatience)([&] { return over(stream); });
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

/// One communicator with a rank for each GPU, all called by this thread, as in runs. Calls that hang are aborted.
class Ring {
 public:
  explicit Ring(const std::deque<Member>& members) : members_(members), ranks_(members.size(), nullptr) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    for (const ncclComm_t c : ranks_)
      if (c) nccl_.ncclCommAbort(c);
  }

  /// Separate from construction, so that the destructor aborts what fails or hangs here.
  void open() {
    ncclUniqueId id;
    require(nccl_, nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    const auto count = static_cast<int>(ranks_.size());
    on_all([&](std::size_t r) { begin_rank(nccl_, members_[r].gpu, id, static_cast<int>(r), count, 16, ranks_[r]); });
  }

  void sum(std::size_t count) {
    on_all([&](std::size_t r) {
      void* const data = members_[r].data->as<void>();
      require(nccl_, nccl_.ncclAllReduce(data, data, count, ncclFloat32, ncclSum, ranks_[r], members_[r].stream),
              "ncclAllReduce");
    });
    for (const Member& m : members_) finish(m.stream);
  }

 private:
  void on_all(const std::function<void(std::size_t)>& calls) {
    group(nccl_, [&] {
      for (std::size_t r = 0; r < ranks_.size(); ++r) calls(r);
    });
    for (const ncclComm_t c : ranks_) wait_for(nccl_, c, at_most(kPatience));
  }

  Nccl nccl_;
  const std::deque<Member>& members_;
  std::vector<ncclComm_t> ranks_;
};

/// Sums numbers that differ between GPUs and whose sum depends on the order; returns what each GPU holds afterwards.
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

/// Whether graphs may hold copies between GPUs, which the manual leaves open; why not, in the words of the driver.
Json captures_peer_copies(const Member& from, const Member& to, std::size_t bytes) {
  check(cudaSetDevice(from.gpu), "cudaSetDevice");
  cudaError_t status = cudaSuccess;
  std::optional<Graph> graph;
  std::string why_not;
  try {
    graph.emplace(from.stream, [&] {
      status = cudaMemcpyPeerAsync(to.data->as<void>(), to.gpu, from.data->as<void>(), from.gpu, bytes, from.stream);
    });
  } catch (const CudaError& e) {  // The capture could not begin, end or be instantiated.
    why_not = e.what();
    cudaGetLastError();
  }
  if (status == cudaErrorStreamCaptureUnsupported)
    why_not = "cudaMemcpyPeerAsync: " + to_text(status);
  else
    check(status, "cudaMemcpyPeerAsync");
  if (why_not.empty()) graph->launch(from.stream);
  finish(from.stream);  // A GPU that is broken says so here.
  return why_not.empty() ? Json{{"captures_peer_copies", true}}
                         : Json{{"captures_peer_copies", false}, {"why_no_capture", why_not}};
}

}  // namespace

Json several_gpus() {
  constexpr std::size_t kCount = std::size_t{1} << 20;
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (count < 2) return {{"skipped", "there is one GPU"}};
  std::deque<Member> members;
  for (int g = 0; g < count; ++g) members.emplace_back(g, kCount * sizeof(float));
  Json results{{"gpus", count}};
  const bool there = reach_memory(0, 1), back = reach_memory(1, 0);  // As runs ask for it.
  results["peer_access"] = there && back;
  results.update(captures_peer_copies(members[0], members[1], kCount));
  Ring ring(members);
  ring.open();
  const auto first = summed(ring, members, kCount);
  results["sum_is_the_same_on_all"] =
      std::all_of(first.begin(), first.end(), [&](const auto& n) { return n == first[0]; });
  results["sum_repeats_its_bits"] = summed(ring, members, kCount) == first;
  check(cudaSetDevice(0), "cudaSetDevice");
  return results;
}

}  // namespace stagecraft::cuda::first_run
