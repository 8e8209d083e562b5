#include "backends/cuda/facts.hpp"

#include <fmt/format.h>

#include "backends/cuda/libraries.hpp"
#include "backends/cuda/partitions.hpp"
#include "backends/world.hpp"
#include "sim/core/quantity.hpp"

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
    return fmt::format("in {} groups that partitions are made of", whole.groups());
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

}  // namespace

std::string facts() {
  return devices() + "\n" + reach() + library<CublasLt>("cuBLASLt", cublas_version) + "\n" +
         library<Nccl>("NCCL", nccl_version) + "\n" + ways();
}

}  // namespace stagecraft::cuda
