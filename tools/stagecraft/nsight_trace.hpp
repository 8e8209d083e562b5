#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// What `nsys export --type sqlite` wrote, as a trace that read_kineto() understands.
struct NsightTrace {
  std::string json;
  bool has_layers = false;
  bool has_kernels = false;        ///< Else times are of ranges, on a machine without a GPU.
  std::vector<std::string> notes;  ///< Ranges and kernels that could not be used.
};

/// An NVTX range named CLASS and a number, such as layer_3, is the forward of a layer; one with "backward" after it,
/// its backward. Ranges of torch.autograd.profiler.emit_nvtx with "seq = N" join a backward to its forward. A kernel
/// belongs to the range in which it was launched. InputError where the file lacks tables, or has a GPU but no kernels;
/// BackendError where SQLite cannot read it.
NsightTrace read_nsight_trace(const std::string& file);

}  // namespace stagecraft
