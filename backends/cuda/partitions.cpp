// Carves one GPU into green contexts, which divide its multiprocessors, and makes streams on them.

#include "backends/cuda/partitions.hpp"

#include <algorithm>
#include <numeric>

namespace stagecraft::cuda {

struct Partitions::Driver {
#define STAGECRAFT_DRIVER(name) decltype(&::name) name = driver_function<decltype(&::name)>(#name)
  STAGECRAFT_DRIVER(cuDeviceGet);
  STAGECRAFT_DRIVER(cuDeviceGetDevResource);
  STAGECRAFT_DRIVER(cuDevSmResourceSplitByCount);
  STAGECRAFT_DRIVER(cuDevResourceGenerateDesc);
  STAGECRAFT_DRIVER(cuGreenCtxCreate);
  STAGECRAFT_DRIVER(cuGreenCtxDestroy);
  STAGECRAFT_DRIVER(cuGreenCtxGetDevResource);
};

namespace {

/// The functions with which a driver of CUDA 12.4 makes a stream of a green context.
struct ContextFunctions {
  STAGECRAFT_DRIVER(cuCtxFromGreenCtx);
  STAGECRAFT_DRIVER(cuCtxPushCurrent);
  STAGECRAFT_DRIVER(cuCtxPopCurrent);
  STAGECRAFT_DRIVER(cuStreamCreateWithPriority);
#undef STAGECRAFT_DRIVER

  CUresult operator()(CUstream* stream, CUgreenCtx part, int priority) const {
    CUcontext context{}, before{};
    if (const CUresult r = cuCtxFromGreenCtx(&context, part); r != CUDA_SUCCESS) return r;
    if (const CUresult r = cuCtxPushCurrent(context); r != CUDA_SUCCESS) return r;
    const CUresult result = cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, priority);
    const CUresult restored = cuCtxPopCurrent(&before);
    return result == CUDA_SUCCESS ? restored : result;
  }
};

/// cuGreenCtxStreamCreate is new in CUDA 12.5, so older headers do not declare it.
std::function<CUresult(CUstream*, CUgreenCtx, int)> stream_creation() {
  using Create = CUresult (*)(CUstream*, CUgreenCtx, unsigned flags, int priority);
  constexpr unsigned kSince = 12050;
  try {
    const auto create = driver_function<Create>("cuGreenCtxStreamCreate", std::max(kSince, kDriverFunctions));
    return [create](CUstream* stream, CUgreenCtx part, int priority) {
      return create(stream, part, CU_STREAM_NON_BLOCKING, priority);
    };
  } catch (const CudaError&) {
    return ContextFunctions();
  }
}

}  // namespace

// Split once into the smallest groups and glued together, because what a split gives cannot be split again.
Partitions::Partitions(int device, const std::vector<unsigned>& shares, bool with_streams) {
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaFree(nullptr), "cudaFree");  // Makes the primary context, to which green contexts belong.
  const Driver driver;
  destroy_ = driver.cuGreenCtxDestroy;
  create_stream_ = stream_creation();
  CUdevice handle{};
  check(driver.cuDeviceGet(&handle, device), "cuDeviceGet");
  CUdevResource whole{}, rest{};
  check(driver.cuDeviceGetDevResource(handle, &whole, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  const unsigned sum = std::accumulate(shares.begin(), shares.end(), 0U);
  if (sum == 0) throw CudaError("no partition was asked for");
  const auto split = [&](unsigned flags, unsigned size) {
    check(driver.cuDevSmResourceSplitByCount(nullptr, &groups_, &whole, nullptr, flags, size), "counting groups");
    std::vector<CUdevResource> groups(groups_);
    check(driver.cuDevSmResourceSplitByCount(groups.data(), &groups_, &whole, &rest, flags, size), "splitting");
    groups.resize(groups_);
    return groups;
  };
  std::vector<CUdevResource> groups = split(0, 1);  // The driver takes its smallest size.
  unsigned each = groups_ / sum;
  // A chip with a smaller cluster may have one group too few, which would leave almost half of it idle. Then parts are
  // cut through clusters of multiprocessors: no kernel of this project uses those, but fast ones of cuBLASLt do, which
  // then cannot run there.
  if (each > 0 && 4 * (groups_ - each * sum) > groups_) {
    const unsigned before = each * groups.front().sm.smCount;
    std::vector<CUdevResource> fine =
        split(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, whole.sm.smCount / sum / 2 * 2);
    if (groups_ >= sum && fine.front().sm.smCount > before) {
      groups = std::move(fine);
      each = 1;
    }
    groups_ = static_cast<unsigned>(groups.size());
  }
  if (each == 0) throw CudaError("more shares than groups of multiprocessors");
  group_ = groups.front().sm.smCount;
  unused_ = whole.sm.smCount;
  try {
    CUdevResource* next = groups.data();
    for (const unsigned share : shares) {
      add_part(driver, handle, next, each * share, with_streams);
      next += each * share;
    }
  } catch (...) {
    release();
    throw;
  }
}

void Partitions::add_part(const Driver& driver, CUdevice handle, CUdevResource* groups, unsigned count,
                          bool with_streams) {
  Partition& part = parts_.emplace_back();
  CUdevResourceDesc description{};
  check(driver.cuDevResourceGenerateDesc(&description, groups, count), "cuDevResourceGenerateDesc");
  check(driver.cuGreenCtxCreate(&part.context, description, handle, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
  CUdevResource got{};
  check(driver.cuGreenCtxGetDevResource(part.context, &got, CU_DEV_RESOURCE_TYPE_SM), "cuGreenCtxGetDevResource");
  part.multiprocessors = got.sm.smCount;
  unused_ -= part.multiprocessors;
  if (!with_streams) return;
  check(create_stream_(&part.compute, part.context, 0), "a stream");
  check(create_stream_(&part.comm, part.context, -5), "a stream");
}

cudaStream_t Partitions::new_stream(std::size_t part, int priority) {
  check(create_stream_(&more_.emplace_back(), parts_[part].context, priority), "a stream");
  return more_.back();
}

void Partitions::close_streams() noexcept {
  for (const cudaStream_t stream : more_)
    if (stream) cudaStreamDestroy(stream);
  more_.clear();
}

void Partitions::release() noexcept {
  close_streams();
  for (const Partition& part : parts_) {
    if (part.compute) cudaStreamDestroy(part.compute);
    if (part.comm) cudaStreamDestroy(part.comm);
    if (part.context) destroy_(part.context);
  }
  parts_.clear();
}

}  // namespace stagecraft::cuda
