#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/cuda/driver.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// How messages move.
class Messages {
 public:
  virtual ~Messages() = default;
  /// Everything that `work` copies on the stream belongs to this message.
  virtual void message(int transfer, cudaStream_t, const std::function<void()>& work) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes, cudaStream_t) = 0;
};

/// By cudaMemcpyAsync.
std::unique_ptr<Messages> copied_messages();
/// By NCCL, from a rank to itself: one communicator for all, for each pair of devices, or for each direction, as the
/// program has streams. The virtual devices have to be on one GPU, which NCCL takes for one rank. CudaError without it.
std::unique_ptr<Messages> nccl_messages(const Program&);

}  // namespace stagecraft::cuda
