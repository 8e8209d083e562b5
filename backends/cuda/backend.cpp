// The catalog entry `cuda`: what it needs of a machine, runs, profiles, and the facts that `doctor` prints.

#include <fmt/core.h>
#include <algorithm>
#include <cstdlib>
#include <string>

#include "backends/backend.hpp"
#include "backends/cuda/cudnn.hpp"
#include "backends/cuda/driver.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/product_choices.hpp"
#include "backends/cuda/libraries.hpp"
#include "backends/cuda/measure.hpp"
#include "backends/cuda/messages.hpp"
#include "backends/cuda/partitions.hpp"
#include "backends/cuda/run.hpp"
#include "backends/real/kernels.hpp"
#include "backends/real/required_kernels.hpp"
#include "backends/real/stage_net.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/quantity.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::cuda {
namespace {

/// What a library says of itself, or that it is not there.
template <class Loaded>
std::string library(const char* name, std::string (*version)(const Loaded&)) {
  try {
    const Loaded loaded;
    return fmt::format("{} {} from {}", name, version(loaded), loaded.library.where());
  } catch (const CudaError&) {
    return fmt::format("{} is not found: STAGECRAFT_CUDA_LIBRARIES names folders to look in", name);
  }
}

std::string cublas_version(const CublasLt& lt) {
  const std::size_t v = lt.cublasLtGetVersion();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

std::string nccl_version(const Nccl& nccl) {
  int v = 0;
  if (nccl.ncclGetVersion(&v) != ncclSuccess) return "of an unknown version";
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

std::string groups_of(int device) {
  try {
    const Partitions whole(device, {1});
    return fmt::format("in {} that partitions are made of", pluralize(whole.groups(), "group"));
  } catch (const CudaError& e) {
    return fmt::format("not divided: {}", e.what());
  }
}

std::string devices() {
  if (const std::string why = why_no_device(); !why.empty()) return "no GPU: " + why;
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::string text;
  for (int d = 0; d < count; ++d) {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, d), "cudaGetDeviceProperties");
    text += fmt::format("{}GPU {}: {}, {}, {} multiprocessors {}", d > 0 ? "\n" : "", d, p.name,
                        to_text(Bytes{static_cast<double>(p.totalGlobalMem)}), p.multiProcessorCount, groups_of(d));
  }
  return text;
}

/// Empty where there are not two GPUs.
std::string reach() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) return {};
  std::string text;
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      int can = 1;
      if (from != to) check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
      if (!can) text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", from, to);
    }
  return text.empty() ? "GPUs reach the memory of each other\n"
                      : fmt::format("copies go through the host from GPU {}\n", text);
}

bool has_nccl() {
  try {
    return Nccl().ncclGetVersion != nullptr;
  } catch (const CudaError&) {
    return false;
  }
}

/// What a run can be spread over here.
std::string ways() {
  const bool nccl = has_nccl(), mpi = !mpi_version().empty();
  const char* const between = !mpi    ? "no: built without MPI"
                              : !nccl ? "no: without NCCL"
                                      : "yes, mpirun -n N, messages by NCCL";
  return fmt::format(
      "one process: a GPU for each device or one divided, messages by copy, kernel{}\nseveral processes: {}",
      nccl ? " or nccl" : "; nccl is not there", between);
}

/// What this build and this machine have of CUDA, one line each.
std::string facts() {
  return devices() + "\n" + reach() + library<CublasLt>("cuBLASLt", cublas_version) + "\n" +
         library<Nccl>("NCCL", nccl_version) + "\n" + library<cudnn::Library>("cuDNN", cudnn::version) + "\n" + ways();
}

}  // namespace

}  // namespace stagecraft::cuda

namespace stagecraft::backends {
namespace {

using cuda::check;

std::string why_not() {
  // The driver reads it when it starts. Loading a kernel late may wait for the device, and with it for a kernel of NCCL
  // that waits for another process.
  if (world().size > 1) setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  return cuda::why_no_device();
}

std::string version_text() {
  int runtime = 0, driver = 0;
  const bool no_device = !why_not().empty();
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  if (no_device) return "CUDA " + cuda::cuda_version(runtime);
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return fmt::format("CUDA {}, driver for {}", cuda::cuda_version(runtime), cuda::cuda_version(driver));
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

/// Each of several processes has its own, "FILE.0", "FILE.1" and so on.
std::string products_file(const GpuOptions& options) {
  if (options.products.empty() || world().size == 1) return options.products;
  return fmt::format("{}.{}", options.products, world().rank);
}

void require_kernels(const Workload& workload) { real::require_kernels(workload, cuda::has_kernel, real::has_kernel); }

/// Refuses a file of choices for a run that chooses no algorithms, which would leave it unread and unwritten.
void require_choices(const Workload& workload, const GpuOptions& options) {
  const std::size_t width = real::width_of(workload);
  if (options.products.empty() || width == real::kMixedWidth ||
      (width != sizeof(double) && options.precision != GpuPrecision::Exact))
    return;
  const bool doubles = width == sizeof(double);
  throw InputError({{{},
                     "run.gpu.products",
                     fmt::format("{} always takes the first algorithm of each product, so it has no choices to keep",
                                 doubles ? "a run in doubles" : "run.gpu.precision: exact"),
                     fmt::format("{}run.gpu.precision: tf32 or bf16, or model.precision: mixed",
                                 doubles ? "model.precision: fp32 with " : ""),
                     "no-choices"}});
}

bool has_groups(const Workload& workload) {
  return std::any_of(workload.stages.begin(), workload.stages.end(), [](const StageWorkload& stage) {
    return stage.degrees.divides() || stage.sharding != StateSharding::None;
  });
}

Timeline run(const Program& program, const Cluster&, const RunOptions& options) {
  if (!program.workload) throw InternalError("the cuda backend was not told what to compute");
  if (options.emulated)
    throw InputError("an emulated run sleeps on the cores of this machine, which needs no GPU", "--backend cpu");
  require_kernels(*program.workload);
  require_choices(*program.workload, options.gpu);
  cuda::Options gpu_options;
  gpu_options.gpu = options.gpu;
  gpu_options.one_thread = options.one_thread;
  gpu_options.copy_kernel = cuda::copy_by_kernel;
  if (options.timeout.value > 0) gpu_options.timeout = options.timeout.value;
  cuda::ProductChoices::of_process().open(products_file(options.gpu));
  Timeline timeline = cuda::run(program, maker_of(options.gpu), gpu_options);
  if (timeline.enqueued) {
    timeline.enqueued->timed_products = cuda::timed_products();
    timeline.enqueued->attention = cuda::attention_choices();
  }
  cuda::ProductChoices::of_process().save();
  return timeline;
}

Profile profile(const ProfileRequest& request) {
  require_kernels(request.workload);
  require_choices(request.workload, request.gpu);
  cuda::ProductChoices::of_process().open(products_file(request.gpu));
  Profile profile = cuda::measure(request, maker_of(request.gpu), cuda::copy_by_kernel);
  cuda::ProductChoices::of_process().save();
  return profile;
}

}  // namespace

extern const BackendDef cuda;
const BackendDef cuda{
    .name = "cuda",
    .summary = "Really runs it on GPUs: streams, events, cuBLASLt, NCCL",
    .source = "NVIDIA, CUDA 13.0, 2025",
    .clock = Clock::Device,
    .version = version_text,
    .why_not = why_not,
    .run = run,
    .profile = profile,
    .facts = cuda::facts,
};

}  // namespace stagecraft::backends
