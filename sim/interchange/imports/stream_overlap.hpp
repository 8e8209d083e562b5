#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// Busy time of the GPU streams in a trace of PyTorch's profiler, as CSV with the columns device, what, milliseconds:
/// the span of all kernels, computation, communication, both at once, neither, and each stream. A stream communicates
/// where kernels of NCCL, NVSHMEM or DeepEP have most of its time. InputError where there are no kernels.
std::string stream_overlap_csv(std::string_view trace, const std::string& file);

}  // namespace stagecraft
