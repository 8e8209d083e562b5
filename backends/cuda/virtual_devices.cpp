#include "backends/cuda/virtual_devices.hpp"

#include <fmt/format.h>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/patience.hpp"

namespace stagecraft::cuda {
namespace {

constexpr int kFirst = -5;  // The highest priority there is.

int gpu_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

/// Work and events come from the primary context; the manual leaves open whether streams of partitions take them.
void require_streams(const Partitions& partitions) {
  const cudaStream_t first = partitions.parts().front().compute, last = partitions.parts().back().compute;
  const Event begin(cudaEventDefault), end(cudaEventDefault);
  const Block block(1);
  begin.record(first);
  begin.hold_up(last);
  check(cudaMemsetAsync(block.as<void>(), 0, 1, last), "cudaMemsetAsync");
  end.record(last);
  at_most(10)([&] { return end.over(); });
  end.milliseconds_since(begin);
}

/// Null, and why, where the driver has no green contexts, or the GPU too few groups.
std::unique_ptr<Partitions> divided(int count, std::string& why_not) {
  try {
    auto made = std::make_unique<Partitions>(0, std::vector<unsigned>(static_cast<std::size_t>(count), 1));
    require_streams(*made);
    return made;
  } catch (const CudaError& e) {
    cudaGetLastError();
    why_not = e.what();
    return nullptr;
  }
}

/// Gradients of replicas are added where one of them is, which reads the memory of the others.
void join_memories(int count) {
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      int can = 0;
      check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
      if (!can) throw CudaError(fmt::format("GPU {} cannot reach the memory of GPU {}", from, to));
      check(cudaSetDevice(from), "cudaSetDevice");
      const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
      cudaGetLastError();
      if (result != cudaErrorPeerAccessAlreadyEnabled) check(result, "cudaDeviceEnablePeerAccess");
    }
}

}  // namespace

const char* to_text(Carve carve) {
  switch (carve) {
    case Carve::Gpus:
      return "gpus";
    case Carve::Green:
      return "green";
    case Carve::None:
      return "none";
  }
  return "";
}

VirtualDevices::VirtualDevices(int count) : count_(count) {
  prepare_driver();
  const int gpus = gpu_count();
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaGetDeviceProperties(&properties_, 0), "cudaGetDeviceProperties");
  if (gpus >= count) {
    join_memories(count);
    carve_ = Carve::Gpus;
  } else if ((partitions_ = divided(count, why_undivided_))) {
    carve_ = Carve::Green;
  }
}

VirtualDevices::~VirtualDevices() {
  for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

int VirtualDevices::multiprocessors(int device) const {
  if (partitions_) return static_cast<int>(partitions_->parts()[static_cast<std::size_t>(device)].multiprocessors);
  return properties_.multiProcessorCount;
}

cudaStream_t VirtualDevices::new_stream(int device, bool for_messages) {
  const int priority = for_messages ? kFirst : 0;
  if (partitions_) return partitions_->new_stream(static_cast<std::size_t>(device), priority);
  check(cudaSetDevice(gpu(device)), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreate");
  streams_.push_back(stream);
  return stream;
}

std::string VirtualDevices::description() const {
  switch (carve_) {
    case Carve::Gpus:
      return count_ == 1 ? fmt::format("{}", properties_.name) : fmt::format("{} x {}", count_, properties_.name);
    case Carve::Green:
      return fmt::format("{} partitions of {} of the {} multiprocessors of {}", count_, multiprocessors(0),
                         properties_.multiProcessorCount, properties_.name);
    case Carve::None:
      return fmt::format("{} devices that share {} undivided ({})", count_, properties_.name, why_undivided_);
  }
  return {};
}

}  // namespace stagecraft::cuda
