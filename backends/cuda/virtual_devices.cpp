// Makes the devices of a plan from the GPUs here: whole GPUs, equal partitions, or several on each undivided GPU.

#include "backends/cuda/virtual_devices.hpp"

#include <algorithm>

#include <fmt/core.h>

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
void require_streams(Partitions& partitions) {
  const cudaStream_t first = partitions.new_stream(0, 0);
  const cudaStream_t last = partitions.new_stream(partitions.parts().size() - 1, 0);
  const Event begin(cudaEventDefault), end(cudaEventDefault);
  const Block block(1);
  begin.record(first);
  begin.hold_up(last);
  check(cudaMemsetAsync(block.as<void>(), 0, 1, last), "cudaMemsetAsync");
  end.record(last);
  at_most(10)([&] { return end.over(); });
  end.milliseconds_since(begin);
  partitions.close_streams();
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
  per_gpu_ = (count + static_cast<int>(gpus_.size()) - 1) / static_cast<int>(gpus_.size());
  partitioning_ = per_gpu_ == 1 ? GpuPartitioning::Gpus : divide() ? GpuPartitioning::Green : GpuPartitioning::None;
  if (gpu(count - 1) != gpu(0)) join_memories();
}

/// Divides each GPU that is used into equal parts; false, and none is divided, if one of them cannot be.
bool VirtualDevices::divide() {
  for (int first = 0; first < count_; first += per_gpu_) {
    partitions_.push_back(divided(gpu(first), per_gpu_, why_undivided_));
    if (partitions_.back()) continue;
    partitions_.clear();
    return false;
  }
  return true;
}

/// Gradients of replicas are added where one of them is, which reads the memory of the others where it can.
void VirtualDevices::join_memories() {
  for (int d = 0; d < count_; ++d)
    for (int other = 0; other < count_; ++other)
      if (gpu(d) != gpu(other) && !reach_memory(gpu(d), gpu(other))) strangers_.emplace_back(gpu(d), gpu(other));
}

bool VirtualDevices::reaches(int device, int other) const {
  return std::find(strangers_.begin(), strangers_.end(), std::pair{gpu(device), gpu(other)}) == strangers_.end();
}

VirtualDevices::~VirtualDevices() {
  for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

int VirtualDevices::multiprocessors(int device) const {
  if (const Partitions* const partitions = partitions_of(device))
    return static_cast<int>(partitions->parts()[device % per_gpu_].multiprocessors);
  return properties_.multiProcessorCount;
}

cudaStream_t VirtualDevices::new_stream(int device, bool for_messages) {
  const int priority = for_messages ? kFirst : 0;
  if (Partitions* const partitions = partitions_of(device)) {
    check(cudaSetDevice(gpu(device)), "cudaSetDevice");
    return partitions->new_stream(static_cast<std::size_t>(device % per_gpu_), priority);
  }
  check(cudaSetDevice(gpu(device)), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreate");
  streams_.push_back(stream);
  return stream;
}

std::string VirtualDevices::description() const {
  const int used = (count_ + per_gpu_ - 1) / per_gpu_;
  const std::string gpus = used == 1 ? std::string(properties_.name) : fmt::format("{} x {}", used, properties_.name);
  switch (partitioning_) {
    case GpuPartitioning::Gpus:
      return gpus;
    case GpuPartitioning::Green: {
      const unsigned unused = partitions_.front()->unused(), whole_groups = unused / partitions_.front()->group();
      return fmt::format("{} partitions of {} of the {} multiprocessors of {}{}{}", count_, multiprocessors(0),
                         properties_.multiProcessorCount, used > 1 ? "each of " : "", gpus,
                         whole_groups > 0 ? fmt::format(", {} unused", unused) : "");
    }
    case GpuPartitioning::None:
      return fmt::format("{} devices that share {} undivided ({})", count_, gpus, why_undivided_);
  }
  return {};
}

}  // namespace stagecraft::cuda
