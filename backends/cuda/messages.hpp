#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backends/backend.hpp"
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
  virtual int communicators() const { return 0; }  ///< The number of NCCL communicators; each has its own streams.
};

/// By cudaMemcpyAsync, between GPUs by cudaMemcpyPeerAsync. `gpus`: the GPU of each device of the program.
std::unique_ptr<Messages> copied_messages(const Program&, std::vector<int> gpus);
/// By a kernel on the stream that carries the message, which reaches into the memory of the other GPU.
using CopyKernel = std::function<void(const void* from, void* to, std::size_t bytes, cudaStream_t)>;
std::unique_ptr<Messages> kernel_messages(CopyKernel);
/// By NCCL, from a rank to itself: one communicator for all, for each pair of devices, or for each direction, as the
/// program has streams. It serves virtual devices on one GPU, which NCCL takes for one rank; messages between GPUs
/// belong to NcclCommunicators. `max_ctas`: thread blocks of a kernel, a power of two; 0: 4. CudaError without NCCL.
std::unique_ptr<Messages> nccl_messages(const Program&, const std::vector<int>& gpus, int max_ctas);

/// Messages as these options ask for; `gpus` as above.
std::unique_ptr<Messages> make_messages(const Program&, const std::vector<int>& gpus, const GpuOptions&,
                                        const CopyKernel&);
}  // namespace stagecraft::cuda
