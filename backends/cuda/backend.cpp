#include "backends/backend.hpp"

#include <fmt/format.h>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/facts.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/measure.hpp"
#include "backends/cuda/messages.hpp"
#include "backends/cuda/run.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::backends {
namespace {

using cuda::check;

std::string two_parts(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string version_text() {
  int runtime = 0, driver = 0;
  const bool no_device = !cuda::why_no_device().empty();
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  if (no_device) return "CUDA " + two_parts(runtime);
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return fmt::format("CUDA {}, driver for {}", two_parts(runtime), two_parts(driver));
}

cuda::Precision precision_of(GpuPrecision precision) {
  switch (precision) {
    case GpuPrecision::Exact:
      return cuda::Precision::Exact;
    case GpuPrecision::Tf32:
      return cuda::Precision::Tf32;
    case GpuPrecision::Bf16:
      return cuda::Precision::Bf16;
  }
  return cuda::Precision::Exact;
}

cuda::KernelMaker maker_of(const GpuOptions& options) {
  return [precision = precision_of(options.precision)](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors, precision}, width);
  };
}

Timeline run(const Program& program, const Cluster&, const RunOptions& options) {
  if (!program.workload) throw InternalError("the cuda backend was not told what to compute");
  if (options.emulated)
    throw InputError("an emulated run sleeps on the cores of this machine, which needs no GPU", "--backend cpu");
  cuda::Options own;
  own.gpu = options.gpu;
  own.one_thread = options.one_thread;
  own.copy_kernel = cuda::copy_by_kernel;
  if (options.timeout.value > 0) own.timeout = options.timeout.value;
  return cuda::run(program, maker_of(options.gpu), own);
}

}  // namespace

extern const BackendDef cuda;
const BackendDef cuda{
    .name = "cuda",
    .summary = "Really runs it on GPUs: streams, events, cuBLASLt, NCCL",
    .source = "NVIDIA, CUDA 13.0, 2025",
    .clock = Clock::Device,
    .version = version_text,
    .why_not = cuda::why_no_device,
    .run = run,
    .profile = [](const ProfileRequest& request) { return cuda::measure(request, maker_of(request.gpu)); },
    .facts = cuda::facts,
};

}  // namespace stagecraft::backends
