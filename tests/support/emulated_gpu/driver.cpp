// The functions of the driver that carve a GPU.
#include <cstring>

#include "tests/support/emulated_gpu/machine.hpp"

using namespace stagecraft::emulated_gpu;

namespace {

/// `first`: the number of the first of them.
CUdevResource of_size(unsigned multiprocessors, unsigned first = 0) {
  CUdevResource r{};
  r.type = CU_DEV_RESOURCE_TYPE_SM;
  r.sm.smCount = multiprocessors;
  std::memcpy(r._internal_padding, &first, sizeof first);
  return r;
}

unsigned first_of(const CUdevResource& resource) {
  unsigned first = 0;
  std::memcpy(&first, resource._internal_padding, sizeof first);
  return first;
}

constexpr CUdevice kFirst = 100;  // The handle of device 0, which no manual says is 0.

CUresult get_device(CUdevice* device, int number) {
  if (number < 0 || number >= state().machine.devices) return CUDA_ERROR_INVALID_VALUE;
  *device = kFirst + number;
  return CUDA_SUCCESS;
}

CUresult get_resource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  if (device < kFirst) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = of_size(static_cast<unsigned>(state().machine.multiprocessors));
  return CUDA_SUCCESS;
}

CUresult split(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* rest, unsigned flags,
               unsigned min_size) {
  constexpr unsigned kPair = 2;  // Two multiprocessors share what cannot be divided.
  const Machine& m = state().machine;
  const bool fine = m.fine_partitions && flags == CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
  const auto group = fine ? kPair : static_cast<unsigned>(m.group);
  const unsigned size = (std::max(min_size, 1U) + group - 1) / group * group;
  unsigned count = input->sm.smCount / size;
  if (m.groups > 0 && !fine) count = std::min(count, static_cast<unsigned>(m.groups) * group / size);
  if (!result) {
    *groups = count;
    return CUDA_SUCCESS;
  }
  *groups = std::min(*groups, count);
  const unsigned first = first_of(*input);
  for (unsigned i = 0; i < *groups; ++i) result[i] = of_size(size, first + i * size);
  const unsigned left = input->sm.smCount - *groups * size;
  if (rest) *rest = left > 0 ? of_size(left, first + *groups * size) : CUdevResource{};
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  auto numbers = std::make_unique<std::vector<unsigned>>();
  for (unsigned i = 0; i < count; ++i)
    for (unsigned m = 0; m < resources[i].sm.smCount; ++m) numbers->push_back(first_of(resources[i]) + m);
  if (numbers->empty()) return CUDA_ERROR_INVALID_VALUE;
  *description = reinterpret_cast<CUdevResourceDesc>(numbers.get());
  state().descriptions.push_back(std::move(numbers));
  return CUDA_SUCCESS;
}

CUresult create(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM || device < kFirst) return CUDA_ERROR_INVALID_VALUE;
  State& s = state();
  s.contexts.push_back(std::make_unique<CUgreenCtx_st>());
  *context = s.contexts.back().get();
  (*context)->device = device - kFirst;
  (*context)->multiprocessors = *reinterpret_cast<const std::vector<unsigned>*>(description);
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
  (*stream)->partition = context;
  return CUDA_SUCCESS;
}

CUresult context_of(CUcontext* context, CUgreenCtx part) {
  *context = reinterpret_cast<CUcontext>(part);
  return CUDA_SUCCESS;
}

CUresult push_context(CUcontext context) {
  state().pushed.push_back(reinterpret_cast<CUgreenCtx>(context));
  return CUDA_SUCCESS;
}

CUresult pop_context(CUcontext* context) {
  if (state().pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = reinterpret_cast<CUcontext>(state().pushed.back());
  state().pushed.pop_back();
  return CUDA_SUCCESS;
}

CUresult new_stream_of_current(CUstream* stream, unsigned flags, int priority) {
  if (state().pushed.empty()) throw Misuse("a stream of a part is made while the context of no part is current");
  return new_stream(stream, state().pushed.back(), flags, priority);
}

CUresult resource_of(CUgreenCtx context, CUdevResource* resource, CUdevResourceType) {
  *resource = of_size(static_cast<unsigned>(context->multiprocessors.size()), context->multiprocessors.front());
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

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* answer) {
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* answer) {
  const unsigned version = CUDART_VERSION;
#endif
  constexpr unsigned kStreams = 12050;
  *function = nullptr;
  const auto register_entry_point = [&](const char* offered, auto* f) {
    if (state().machine.green_contexts && std::strcmp(name, offered) == 0) *function = reinterpret_cast<void*>(f);
  };
  register_entry_point("cuDeviceGetDevResource", get_resource);
  register_entry_point("cuDevSmResourceSplitByCount", split);
  register_entry_point("cuDevResourceGenerateDesc", describe);
  register_entry_point("cuGreenCtxCreate", create);
  register_entry_point("cuGreenCtxDestroy", destroy);
  if (state().machine.green_streams && version >= kStreams) register_entry_point("cuGreenCtxStreamCreate", new_stream);
  register_entry_point("cuCtxFromGreenCtx", context_of);
  register_entry_point("cuCtxPushCurrent", push_context);
  register_entry_point("cuCtxPopCurrent", pop_context);
  register_entry_point("cuStreamCreateWithPriority", new_stream_of_current);
  register_entry_point("cuGreenCtxGetDevResource", resource_of);
  register_entry_point("cuGetErrorName", name_of);
  register_entry_point("cuGetErrorString", words_of);
  if (std::strcmp(name, "cuDeviceGet") == 0) *function = reinterpret_cast<void*>(get_device);
  *answer = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
