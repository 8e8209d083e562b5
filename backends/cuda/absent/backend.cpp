// The catalog entry `cuda` in a build without CUDA, which says what to install.

#include "backends/backend.hpp"

#include "sim/core/diagnostic.hpp"

namespace stagecraft::backends {
namespace {

std::string why_not() { return "not built with CUDA: install the CUDA Toolkit, 12.4 or newer, and configure again"; }

Timeline run(const Program&, const Cluster&, const RunOptions&) { throw BackendError("cuda: " + why_not()); }
Profile profile(const ProfileRequest&) { throw BackendError("cuda: " + why_not()); }

}  // namespace

extern const BackendDef cuda;
const BackendDef cuda{
    .name = "cuda",
    .summary = "Really runs it on GPUs: streams, events, cuBLASLt, NCCL",
    .source = "NVIDIA, CUDA 13.0, 2025",
    .clock = Clock::Device,
    .version = [] { return std::string(); },
    .why_not = why_not,
    .run = run,
    .profile = profile,
};

}  // namespace stagecraft::backends
