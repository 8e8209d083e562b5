// NCCL as far as the project needs it: groups of sends, receives and sums, of one rank to itself or between ranks. It
// knows streams only through the functions of the runtime, as the real one does.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/support/emulated_gpu/nccl_ranks.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

using stagecraft::emulated_gpu::Half;
using stagecraft::emulated_gpu::Summed;
namespace emulated = stagecraft::emulated_gpu;

namespace {

struct Group {
  int depth = 0;
  bool broken = false;
  std::vector<Half> halves;           ///< Sends and receives, as they came.
  std::vector<ncclComm_t> gathering;  ///< Communicators that are being made, and wait for their ranks.
  std::vector<ncclComm_t> aborting;
};
Group group;

cudaEvent_t recorded(cudaStream_t stream) {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(emulated::device_of(stream));
  cudaEvent_t event{};
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
  cudaSetDevice(before);
  return event;
}

/// Width of a type; 0: not known here.
std::size_t width(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    case ncclFloat64:
    case ncclInt64:
      return 8;
    default:
      return 0;
  }
}

/// A rank to itself: k-th send to k-th receive.
ncclResult_t copy_to_itself(const std::vector<Half>& halves, cudaStream_t on) {
  std::vector<Half> sends, receives;
  for (const Half& h : halves) {
    if (h.sum == Summed::None)
      (h.from ? sends : receives).push_back(h);
    else if (h.from != h.to)
      cudaMemcpyAsync(h.to, h.from, h.bytes, cudaMemcpyDeviceToDevice, on);
  }
  if (sends.size() != receives.size()) return ncclInvalidUsage;  // A send to itself without its receive.
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].bytes != receives[i].bytes) return ncclInvalidUsage;
    if (sends[i].from == receives[i].to) continue;  // The real one launches nothing.
    cudaMemcpyAsync(receives[i].to, sends[i].from, sends[i].bytes, cudaMemcpyDeviceToDevice, on);
  }
  return ncclSuccess;
}

/// Runs on the last stream that was first mentioned: it waits for the others, and they wait for its end.
ncclResult_t play(ncclComm_t c, const std::vector<Half>& halves) {
  std::vector<cudaStream_t> streams;
  for (const Half& h : halves)
    if (std::find(streams.begin(), streams.end(), h.stream) == streams.end()) streams.push_back(h.stream);
  const cudaStream_t on = streams.back();
  for (const cudaStream_t stream : streams)
    if (emulated::device_of(stream) != c->device) return ncclInvalidUsage;
  for (const cudaStream_t other : streams)
    if (other != on) cudaStreamWaitEvent(on, recorded(other), 0);
  // Graphs know only what was captured with them; the real one sees to the rest when they are launched.
  if (c->last && c->capture == emulated::capture_of(on)) cudaStreamWaitEvent(on, c->last, 0);
  c->capture = emulated::capture_of(on);
  if (c->ranks > 1) {
    emulated::launch(*c, halves, on);
    c->launched = true;
  } else if (const ncclResult_t result = copy_to_itself(halves, on); result != ncclSuccess) {
    return result;
  }
  c->last = recorded(on);
  for (const cudaStream_t other : streams)
    if (other != on) cudaStreamWaitEvent(other, c->last, 0);
  return c->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t end_at_once(ncclComm_t c) {
  c->aborted = true;
  static auto* const left = new std::vector<ncclComm_t>;  // Their kernels look at them, so they stay.
  left->push_back(c);
  if (c->ranks > 1) emulated::leave(*c, true);
  return ncclSuccess;
}

/// Who did not look whether the last call is through may not go on.
ncclResult_t finish() {
  const Group work = group;
  group = {};
  for (const ncclComm_t c : work.aborting) end_at_once(c);
  if (work.broken) return ncclInvalidUsage;
  for (const ncclComm_t c : work.gathering)
    for (int tries = 0; c->blocking && emulated::gathered(*c) == ncclInProgress; ++tries, usleep(1000))
      if (tries > 20000) return ncclSystemError;
  ncclResult_t result = work.gathering.empty() || work.gathering.front()->blocking ? ncclSuccess : ncclInProgress;
  std::vector<ncclComm_t> done;
  for (const Half& h : work.halves) {
    const ncclComm_t c = h.communicator;
    if (std::find(done.begin(), done.end(), c) != done.end()) continue;
    done.push_back(c);
    std::vector<Half> selected;
    std::copy_if(work.halves.begin(), work.halves.end(), std::back_inserter(selected),
                 [&](const Half& other) { return other.communicator == c; });
    const ncclResult_t played = play(c, selected);
    if (played != ncclSuccess && played != ncclInProgress) return played;
    if (played == ncclInProgress) result = played;
  }
  return result;
}

ncclResult_t add(Half half, ncclDataType_t type) {
  const ncclComm_t c = half.communicator;
  if (!c || width(type) == 0 || half.peer < 0 || half.peer >= c->ranks) return ncclInvalidArgument;
  const bool alone = group.depth == 0;
  group.broken = group.broken || (c->launched && !c->blocking) ||
                 (c->ranks > 1 && half.sum == Summed::None && half.peer == c->rank);
  half.bytes *= width(type);
  group.halves.push_back(half);
  return alone ? finish() : ncclSuccess;
}

}  // namespace

/// STAGECRAFT_EMULATED_NCCL_VERSION: another than that of the header.
ncclResult_t ncclGetVersion(int* version) {
  const char* const other = std::getenv("STAGECRAFT_EMULATED_NCCL_VERSION");
  *version = other ? std::atoi(other) : NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "invalid usage (emulated)";
  }
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "%s", emulated::new_folder_name().c_str());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *communicator = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  if (config && config->maxCTAs > 0 && (config->maxCTAs & (config->maxCTAs - 1)) != 0) return ncclInvalidArgument;
  auto* const c = new ncclComm;
  c->ranks = ranks;
  c->rank = rank;
  cudaGetDevice(&c->device);
  c->blocking = !config || config->blocking != 0;
  c->sent.resize(static_cast<std::size_t>(ranks), 0);
  c->received.resize(static_cast<std::size_t>(ranks), 0);
  c->folder = emulated::folder_of(id);
  *communicator = c;
  if (ranks == 1) return ncclSuccess;
  emulated::announce(*c);
  group.gathering.push_back(c);
  return group.depth == 0 ? finish() : ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t* error) {
  *error = ncclInProgress;
  if (c->looks > 0 && --c->looks > 0) return ncclSuccess;
  *error = c->error;
  if (c->ranks == 1 || c->error != ncclSuccess) return ncclSuccess;
  c->launched = false;
  if (emulated::others_aborted(*c)) *error = c->error = ncclRemoteError;
  if (c->met || c->error != ncclSuccess) return ncclSuccess;
  *error = emulated::gathered(*c);
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t c) {
  c->looks = c->blocking ? 0 : 2;
  return c->blocking ? ncclSuccess : ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t c) {
  if (c->looks > 0) {
    ++group.depth;  // The real one leaves the group of this thread open, so that nothing starts any more.
    return ncclInvalidArgument;
  }
  if (c->ranks > 1) emulated::leave(*c, false);
  delete c;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t c) {
  if (group.depth == 0) return end_at_once(c);
  group.aborting.push_back(c);
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  return --group.depth == 0 ? finish() : ncclSuccess;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add({communicator, from, nullptr, count, peer, stream}, type);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add({communicator, nullptr, to, count, peer, stream}, type);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (operation != ncclSum || (type != ncclFloat32 && type != ncclFloat64)) return ncclInvalidArgument;
  return add({communicator, from, to, count, 0, stream, type == ncclFloat64 ? Summed::Doubles : Summed::Floats}, type);
}
