#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/partitions.hpp"

namespace stagecraft::cuda {

/// How the devices of a plan are made from the GPUs of this machine.
enum class GpuPartitioning : std::uint8_t {
  Gpus,   ///< Each device is a whole GPU.
  Green,  ///< Each device is a partition (green context) of one GPU.
  None,   ///< All devices share one GPU: the driver does not divide it, or there are more devices than groups.
};
const char* to_text(GpuPartitioning);

/// The devices of a plan, made from GPUs.
class VirtualDevices {
 public:
  /// `gpus`: the GPUs that may be used; empty: all.
  explicit VirtualDevices(int count, std::vector<int> gpus = {});
  VirtualDevices(const VirtualDevices&) = delete;
  VirtualDevices& operator=(const VirtualDevices&) = delete;
  ~VirtualDevices();

  int count() const { return count_; }
  GpuPartitioning partitioning() const { return partitioning_; }
  int gpu(int device) const {
    return gpus_[partitioning_ == GpuPartitioning::Gpus ? static_cast<std::size_t>(device) : 0];
  }
  /// Whether work of the first may use the memory of the second.
  bool reaches(int device, int other) const;
  int multiprocessors(int device) const;
  int group() const { return partitions_ ? static_cast<int>(partitions_->group()) : 1; }  ///< The fewest given away.
  /// A stream of the device, which goes with the devices. Messages go first.
  cudaStream_t new_stream(int device, bool for_messages);
  /// "NVIDIA H200, 4 partitions of 32 of its 132 multiprocessors".
  std::string description() const;

 private:
  void join_memories();

  int count_ = 0;
  std::vector<int> gpus_;
  std::vector<std::pair<int, int>> strangers_;  ///< GPUs of which the first does not reach the memory of the second.
  GpuPartitioning partitioning_ = GpuPartitioning::None;
  cudaDeviceProp properties_{};
  std::string why_undivided_;
  std::unique_ptr<Partitions> partitions_;
  std::vector<cudaStream_t> streams_;
};

}  // namespace stagecraft::cuda
