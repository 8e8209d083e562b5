#pragma once

#include <functional>
#include <vector>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {

/// One GPU carved into virtual devices: green contexts that divide its streaming multiprocessors. Memory, level-two
/// cache, copy engines, power and clock stay shared. Streams of a partition are used with the primary context current,
/// as any other stream.
class Partitions {
 public:
  struct Partition {
    CUgreenCtx context{};
    cudaStream_t compute{}, comm{};  ///< Only if they were asked for: each stream takes a hardware queue.
    unsigned multiprocessors = 0;    ///< What it really got.
  };

  /// A partition for each share, in proportion, in the groups that the driver can give away: {1, 1, 1, 1} are four
  /// equal ones. Throws CudaError when there are fewer groups than shares. `with_streams`: each has two.
  Partitions(int device, const std::vector<unsigned>& shares, bool with_streams = false);
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  ~Partitions() { release(); }

  const std::vector<Partition>& parts() const { return parts_; }
  /// One more stream of a part, which goes with the partitions.
  cudaStream_t new_stream(std::size_t part, int priority);
  void close_streams() noexcept;               ///< Destroys all of them.
  unsigned group() const { return group_; }    ///< Multiprocessors of the smallest group.
  unsigned groups() const { return groups_; }  ///< Groups that the device was split into.
  unsigned unused() const { return unused_; }  ///< Multiprocessors in no partition.

 private:
  struct Driver;
  /// A part of this many groups, which are next to each other.
  void add_part(const Driver&, CUdevice, CUdevResource* groups, unsigned count, bool with_streams);
  void release() noexcept;

  std::vector<Partition> parts_;
  std::vector<cudaStream_t> more_;
  decltype(&cuGreenCtxDestroy) destroy_ = nullptr;
  std::function<CUresult(CUstream*, CUgreenCtx, int priority)> create_stream_;
  unsigned group_ = 0, groups_ = 0, unused_ = 0;
};

}  // namespace stagecraft::cuda
