// The functions of the driver that carve a GPU.
#include <cstring>

#include "tests/support/emulated_gpu/machine.hpp"

using namespace stagecraft::emulated_gpu;

namespace {

CUdevResource of_size(unsigned multiprocessors) {
  const auto group = static_cast<unsigned>(state().machine.group);
  CUdevResource r{};
  r.type = CU_DEV_RESOURCE_TYPE_SM;
  r.sm.smCount = multiprocessors;
  r.sm.minSmPartitionSize = group;
  r.sm.smCoscheduledAlignment = group;
  return r;
}

CUresult get_resource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = of_size(static_cast<unsigned>(state().machine.multiprocessors));
  return CUDA_SUCCESS;
}

CUresult split(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* rest, unsigned,
               unsigned least) {
  const Machine& m = state().machine;
  const auto group = static_cast<unsigned>(m.group);
  const unsigned size = (std::max(least, 1U) + group - 1) / group * group;
  unsigned most = input->sm.smCount / size;
  if (m.groups > 0) most = std::min(most, static_cast<unsigned>(m.groups));
  if (!result) {
    *groups = most;
    return CUDA_SUCCESS;
  }
  *groups = std::min(*groups, most);
  for (unsigned i = 0; i < *groups; ++i) result[i] = of_size(size);
  const unsigned left = input->sm.smCount - *groups * size;
  if (rest) *rest = left > 0 ? of_size(left) : CUdevResource{};
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  std::uintptr_t sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += resources[i].sm.smCount;
  std::memcpy(description, &sum, sizeof sum);
  return sum == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult create(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  State& s = state();
  s.contexts.push_back(std::make_unique<CUgreenCtx_st>());
  std::uintptr_t size = 0;
  std::memcpy(&size, &description, sizeof size);
  *context = s.contexts.back().get();
  (*context)->device = device;
  (*context)->multiprocessors = static_cast<unsigned>(size);
  return CUDA_SUCCESS;
}

CUresult destroy(CUgreenCtx context) {
  if (!context->alive) throw Misuse("a green context is destroyed twice");
  context->alive = false;
  return CUDA_SUCCESS;
}

CUresult new_stream(CUstream* stream, CUgreenCtx context, unsigned flags, int) {
  if (flags != CU_STREAM_NON_BLOCKING || !context->alive) return CUDA_ERROR_INVALID_VALUE;
  *stream = state().new_stream(context->device, false);
  (*stream)->of_partition = true;
  return CUDA_SUCCESS;
}

CUresult resource_of(CUgreenCtx context, CUdevResource* resource, CUdevResourceType) {
  *resource = of_size(context->multiprocessors);
  return CUDA_SUCCESS;
}

CUresult name_of(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : nullptr;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult words_of(CUresult result, const char** words) {
  *words = result == CUDA_ERROR_INVALID_VALUE ? "invalid argument" : nullptr;
  return *words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* answer) {
  *function = nullptr;
  const auto offer = [&](const char* offered, auto* f) {
    if (state().machine.green_contexts && std::strcmp(name, offered) == 0) *function = reinterpret_cast<void*>(f);
  };
  offer("cuDeviceGetDevResource", get_resource);
  offer("cuDevSmResourceSplitByCount", split);
  offer("cuDevResourceGenerateDesc", describe);
  offer("cuGreenCtxCreate", create);
  offer("cuGreenCtxDestroy", destroy);
  offer("cuGreenCtxStreamCreate", new_stream);
  offer("cuGreenCtxGetDevResource", resource_of);
  offer("cuGetErrorName", name_of);
  offer("cuGetErrorString", words_of);
  *answer = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
