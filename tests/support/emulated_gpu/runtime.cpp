// The functions of the CUDA runtime.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/support/emulated_gpu/machine.hpp"

using namespace stagecraft::emulated_gpu;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

void require_memory(const void* data, std::size_t bytes, bool device, const char* what) {
  const Allocation* const a = state().holds(data, bytes);
  if (device && (!a || a->host)) throw Misuse(std::string(what) + " device memory that is not in use");
}

/// Where the memory of the two sides is, checked when the copy really happens.
void copy_now(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  require_memory(to, bytes, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, "a copy writes to");
  require_memory(from, bytes, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, "a copy reads from");
  const bool crosses =
      kind == cudaMemcpyDeviceToDevice && state().holds(to, bytes)->device != state().holds(from, bytes)->device;
  if (crosses && !state().machine.peer_access) throw Misuse("a copy goes to a GPU that cannot be reached");
  std::memmove(to, from, bytes);
}

/// Through the host where GPUs do not reach each other.
void copy_to_peer(void* to, int target, const void* from, int source, std::size_t bytes) {
  require_memory(to, bytes, true, "a copy writes to");
  require_memory(from, bytes, true, "a copy reads from");
  if (state().holds(to, bytes)->device != target || state().holds(from, bytes)->device != source)
    throw Misuse("a copy between GPUs names others than those its memory is on");
  std::memmove(to, from, bytes);
}

/// What the legacy stream waits for, and what waits for it.
void settle_legacy(State& s) {
  s.run_until([&] {
    return s.legacy.items.empty() && std::all_of(s.streams.begin(), s.streams.end(), [](const auto& stream) {
             return !stream->blocking || stream->items.empty();
           });
  });
}

constexpr double kCopyBandwidth = 1e12;

double seconds_of(std::size_t bytes) { return 1e-6 + static_cast<double>(bytes) / kCopyBandwidth; }

void sync_with_host(State& s, double time) { s.host_time = std::max(s.host_time, time); }

}  // namespace

cudaError_t stagecraft::emulated_gpu::fail(cudaError_t error) { return last_error = error; }

cudaError_t cudaGetLastError() {
  if (state().broken) return cudaErrorIllegalAddress;  // No call clears it.
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return state().broken ? cudaErrorIllegalAddress : last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  static thread_local char text[32];
  switch (error) {
#define EMULATED_NAME(name) \
  case name:                \
    return #name
    EMULATED_NAME(cudaSuccess);
    EMULATED_NAME(cudaErrorNoDevice);
    EMULATED_NAME(cudaErrorInsufficientDriver);
    EMULATED_NAME(cudaErrorMemoryAllocation);
    EMULATED_NAME(cudaErrorNotReady);
    EMULATED_NAME(cudaErrorIllegalAddress);
    EMULATED_NAME(cudaErrorInvalidResourceHandle);
    EMULATED_NAME(cudaErrorStreamCaptureUnsupported);
    EMULATED_NAME(cudaErrorStreamCaptureInvalidated);
    EMULATED_NAME(cudaErrorStreamCaptureUnmatched);
    EMULATED_NAME(cudaErrorStreamCaptureUnjoined);
    EMULATED_NAME(cudaErrorStreamCaptureIsolation);
    EMULATED_NAME(cudaErrorStreamCaptureImplicit);
#undef EMULATED_NAME
    default:
      std::snprintf(text, sizeof text, "cudaError %d", static_cast<int>(error));
      return text;
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    default:
      return cudaGetErrorName(error);
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = state().machine.devices;
  if (state().machine.driver / 1000 < CUDART_VERSION / 1000) return fail(cudaErrorInsufficientDriver);
  return *count > 0 ? cudaSuccess : fail(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  State& s = state();
  if (s.machine.devices == 0) return fail(cudaErrorNoDevice);
  if (device < 0 || device >= s.machine.devices) return fail(cudaErrorInvalidDevice);
  s.current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = state().current;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  const Machine& m = state().machine;
  if (device < 0 || device >= m.devices) return fail(cudaErrorInvalidDevice);
  *p = cudaDeviceProp{};
  std::snprintf(p->name, sizeof p->name, "Emulated GPU");
  p->major = 9;
  p->pciBusID = device;
  p->uuid.bytes[0] = static_cast<char>(device + 1);
  p->multiProcessorCount = m.multiprocessors;
  p->totalGlobalMem = m.memory;
  p->maxThreadsPerBlock = 1024;
  p->sharedMemPerBlock = 48U << 10U;
  p->sharedMemPerBlockOptin = 227U << 10U;
  p->warpSize = 32;
  p->asyncEngineCount = 3;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t e = cudaGetDeviceProperties(&p, device); e != cudaSuccess) return e;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      return cudaSuccess;
    default:
      return fail(cudaErrorInvalidValue);
  }
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().machine.driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* greatest) {
  *lowest = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer && state().machine.peer_access;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return state().machine.peer_access ? cudaSuccess : fail(cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  State& s = state();
  if (s.broken) return fail(cudaErrorIllegalAddress);
  std::size_t used = 0;
  for (const auto& [begin, a] : s.allocations)
    if (!a.host && !a.freed && a.device == s.current) used += a.size;
  *total = s.machine.memory;
  *free = s.machine.memory - used;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  if (s.machine.devices == 0) return fail(cudaErrorNoDevice);
  *data = bytes == 0 ? nullptr : s.allocate(bytes, false);
  return *data || bytes == 0 ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* data) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  if (data) s.free(data, false);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  *data = s.allocate(std::max<std::size_t>(bytes, 1), true);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return cudaHostAlloc(data, bytes, 0); }
cudaError_t cudaFreeHost(void* data) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  if (data) s.free(data, true);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  if (s.capturing()) return fail(s.invalidate(cudaErrorStreamCaptureImplicit));
  settle_legacy(s);
  if (bytes > 0) copy_now(to, from, bytes, kind);
  s.host_time += seconds_of(bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  if (s.capturing()) return fail(s.invalidate(cudaErrorStreamCaptureImplicit));
  settle_legacy(s);
  require_memory(data, bytes, true, "memset writes to");
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  CUstream_st& on = s.stream_of(stream);
  if (bytes == 0) return cudaSuccess;
  const bool pageable_from = kind == cudaMemcpyHostToDevice && !s.holds(from, bytes);
  const bool pageable_to = kind == cudaMemcpyDeviceToHost && !s.holds(to, bytes);
  if (on.graph && (pageable_from || pageable_to)) throw Misuse("a capture copies from or to pageable memory");
  if (pageable_from) {  // Staged before the call returns.
    auto staged =
        std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    s.push(on, {[=] { copy_now(to, staged->data(), bytes, kind); }, seconds_of(bytes), 0, nullptr, nullptr, false});
    return cudaSuccess;
  }
  s.push(on, {[=] { copy_now(to, from, bytes, kind); }, seconds_of(bytes), 0, nullptr, nullptr, false});
  if (pageable_to) s.run_until([&] { return on.items.empty(); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int target, const void* from, int source, std::size_t bytes,
                                cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  const auto work = [=] { copy_to_peer(to, target, from, source, bytes); };
  if (bytes > 0) s.push(s.stream_of(stream), {work, seconds_of(bytes), 0, nullptr, nullptr, false});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  if (bytes == 0) return cudaSuccess;
  const auto work = [=] {
    require_memory(data, bytes, true, "memset writes to");
    std::memset(data, value, bytes);
  };
  s.push(s.stream_of(stream), {work, seconds_of(bytes), 0, nullptr, nullptr, false});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  if (s.machine.devices == 0) return fail(cudaErrorNoDevice);
  *stream = s.new_stream(s.current, (flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  s.stream_of(stream).alive = false;  // What is queued still runs.
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  CUstream_st& on = s.stream_of(stream);
  s.run_until([&] { return on.items.empty(); });
  sync_with_host(s, on.free_at);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  s.run_random_steps();
  if (s.broken) return fail(cudaErrorIllegalAddress);
  return s.stream_of(stream).items.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  s.run_until([&] { return s.idle(); });
  for (const auto& stream : s.streams) sync_with_host(s, stream->free_at);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  CUstream_st& on = s.stream_of(stream);
  if (on.graph && on.graph->invalid) return fail(cudaErrorStreamCaptureInvalidated);
  const cudaError_t result = s.wait(on, s.event_of(event));
  return result == cudaSuccess ? result : fail(result);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  if (s.machine.devices == 0) return fail(cudaErrorNoDevice);
  auto created = std::make_unique<CUevent_st>();
  *event = created.get();
  s.events[*event] = std::move(created);
  (*event)->flags = flags;
  (*event)->device = s.current;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  if (s.stream_of(stream).partition && !s.machine.events_of_partitions) return fail(cudaErrorInvalidResourceHandle);
  s.record(s.event_of(event), s.stream_of(stream), flags == cudaEventRecordExternal);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  s.run_random_steps();
  if (s.broken) return fail(cudaErrorIllegalAddress);
  const std::shared_ptr<Record>& record = s.event_of(event).latest;
  if (record && !record->done) return cudaErrorNotReady;
  if (record) sync_with_host(s, record->time);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  State& s = state();
  const Lock lock(s.mutex);
  if (const cudaError_t e = s.unsafe(); e != cudaSuccess) return fail(e);
  const std::shared_ptr<Record> record = s.event_of(event).latest;
  if (!record) return cudaSuccess;
  s.run_until([&] { return record->done; });
  sync_with_host(s, record->time);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  const CUevent_st &a = s.event_of(begin), &b = s.event_of(end);
  if (((a.flags | b.flags) & cudaEventDisableTiming) != 0 || !a.latest || !b.latest || a.device != b.device)
    return fail(cudaErrorInvalidResourceHandle);
  if (!a.latest->done || !b.latest->done) return fail(cudaErrorNotReady);
  *ms = static_cast<float>(1e3 * (b.latest->time - a.latest->time));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  State& s = state();
  const Lock lock(s.mutex);
  s.event_of(event).alive = false;
  return cudaSuccess;
}
