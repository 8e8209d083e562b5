#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/real/kernels.hpp"

namespace stagecraft::cuda {

/// What matrix products of floats may round to first, which is a permission: cuBLASLt chooses. Sums are in 32 bits
/// always; doubles are left as they are.
enum class Precision : std::uint8_t {
  Exact,  ///< Nothing, and no tensor cores.
  Tf32,   ///< Operands have 11 significant bits at least.
  Bf16,   ///< Operands have 8 at least: cuBLASLt may take TF32 in its place.
};

/// Where kernels run.
struct KernelTarget {
  cudaStream_t stream{};
  int multiprocessors = 0;  ///< Multiprocessors that the stream may use; 0: all of the device.
  Precision precision = Precision::Exact;
};

/// Kernels of the current device; `width` is 4 or 8 bytes a number, or real::kMixedWidth. Every call enqueues and
/// returns at once, but for `download` and `finite`, which wait for the stream. What is released is given out again to
/// work that comes later on the same stream: work of other streams that reads it has to be waited for before. Constants
/// that change from update to update are arguments of the launches. Throws CudaError without cuBLASLt. Not to be used
/// by two threads at once.
std::unique_ptr<real::Kernels> make_kernels(const KernelTarget&, std::size_t width);

/// Whether there is a kernel of 4 and 8 bytes a number. Mixed precision has the kernels of real::has_kernel().
bool has_kernel(const Operation&);

/// The matrix products of this process whose algorithm was chosen among several by their times, or by a file, as text;
/// all others take the first algorithm of cuBLASLt.
std::vector<std::string> timed_products();

/// What computed the attentions of this process in mixed precision, one line for each shape: cuDNN, or the kernels of
/// this folder and why.
std::vector<std::string> attention_choices();

/// A copy by at most 16 blocks of the stream's device, 16 bytes a thread where both ends are so aligned. One of them
/// may be memory of another device that this one reaches.
void copy_by_kernel(const void* from, void* to, std::size_t bytes, cudaStream_t);

}  // namespace stagecraft::cuda
