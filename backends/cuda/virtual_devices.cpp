#include "backends/cuda/virtual_devices.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/driver.hpp"

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
std::unique_ptr<Partitions> divided(int gpu, int count, std::string& why_not) {
  try {
    auto partitions = std::make_unique<Partitions>(gpu, std::vector<unsigned>(count, 1));
    require_streams(*partitions);
    return partitions;
  } catch (const CudaError& e) {
    cudaGetLastError();
    why_not = e.what();
    return nullptr;
  }
}

}  // namespace

const char* to_text(GpuPartitioning partitioning) {
  switch (partitioning) {
    case GpuPartitioning::Gpus:
      return "gpus";
    case GpuPartitioning::Green:
      return "green";
    case GpuPartitioning::None:
      return "none";
  }
  return "";
}

VirtualDevices::VirtualDevices(int count, std::vector<int> gpus) : count_(count), gpus_(std::move(gpus)) {
  prepare_driver();
  if (gpus_.empty())
    for (int g = gpu_count(); g > 0; --g) gpus_.insert(gpus_.begin(), g - 1);
  check(cudaSetDevice(gpus_.front()), "cudaSetDevice");
  check(cudaGetDeviceProperties(&properties_, gpus_.front()), "cudaGetDeviceProperties");
  if (gpus_.size() >= static_cast<std::size_t>(count)) {
    partitioning_ = GpuPartitioning::Gpus;
    join_memories();
  } else if ((partitions_ = divided(gpus_.front(), count, why_undivided_))) {
    partitioning_ = GpuPartitioning::Green;
  }
}

/// Gradients of replicas are added where one of them is, which reads the memory of the others where it can.
void VirtualDevices::join_memories() {
  for (int d = 0; d < count_; ++d)
    for (int other = 0; other < count_; ++other)
      if (d != other && !reach_memory(gpu(d), gpu(other))) strangers_.emplace_back(gpu(d), gpu(other));
}

bool VirtualDevices::reaches(int device, int other) const {
  return std::find(strangers_.begin(), strangers_.end(), std::pair{gpu(device), gpu(other)}) == strangers_.end();
}

VirtualDevices::~VirtualDevices() {
  for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

int VirtualDevices::multiprocessors(int device) const {
  if (partitions_) return static_cast<int>(partitions_->parts()[device].multiprocessors);
  return properties_.multiProcessorCount;
}

cudaStream_t VirtualDevices::new_stream(int device, bool for_messages) {
  const int priority = for_messages ? kFirst : 0;
  if (partitions_) return partitions_->new_stream(device, priority);
  check(cudaSetDevice(gpu(device)), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreate");
  streams_.push_back(stream);
  return stream;
}

std::string VirtualDevices::description() const {
  switch (partitioning_) {
    case GpuPartitioning::Gpus:
      return count_ == 1 ? fmt::format("{}", properties_.name) : fmt::format("{} x {}", count_, properties_.name);
    case GpuPartitioning::Green:
      return fmt::format("{} partitions of {} of the {} multiprocessors of {}", count_, multiprocessors(0),
                         properties_.multiProcessorCount, properties_.name);
    case GpuPartitioning::None:
      return fmt::format("{} devices that share {} undivided ({})", count_, properties_.name, why_undivided_);
  }
  return {};
}

}  // namespace stagecraft::cuda
