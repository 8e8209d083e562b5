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
  Green,  ///< Each device is a partition (green context) of a GPU; k devices on g GPUs are at most ceil(k / g) on each.
  None,   ///< Devices share GPUs: the driver does not divide one, or there are more devices than groups.
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
  int gpu(int device) const { return gpus_[static_cast<std::size_t>(device / per_gpu_)]; }
  /// Whether work of the first may use the memory of the second.
  bool reaches(int device, int other) const;
  int multiprocessors(int device) const;
  /// The fewest multiprocessors that the driver gives away.
  int group() const { return partitions_.empty() ? 1 : static_cast<int>(partitions_.front()->group()); }
  /// A stream of the device, which goes with the devices. Messages go first.
  cudaStream_t new_stream(int device, bool for_messages);
  /// "4 partitions of 32 of the 132 multiprocessors of NVIDIA H200".
  std::string description() const;

 private:
  bool divide();
  void join_memories();
  Partitions* partitions_of(int device) const {
    return partitions_.empty() ? nullptr : partitions_[static_cast<std::size_t>(device / per_gpu_)].get();
  }

  int count_ = 0;
  int per_gpu_ = 1;  ///< Devices of each GPU that is used; the last one may have fewer.
  std::vector<int> gpus_;
  std::vector<std::pair<int, int>> strangers_;  ///< GPUs of which the first does not reach the memory of the second.
  GpuPartitioning partitioning_ = GpuPartitioning::None;
  cudaDeviceProp properties_{};
  std::string why_undivided_;
  std::vector<std::unique_ptr<Partitions>> partitions_;  ///< One for each GPU that is used; empty if none is divided.
  std::vector<cudaStream_t> streams_;
};

}  // namespace stagecraft::cuda
