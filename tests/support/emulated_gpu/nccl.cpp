// NCCL as far as one process needs it: communicators of one rank, which sends to itself. It knows streams only through
// the functions of the runtime, as the real one does.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <memory>
#include <vector>

struct ncclComm {
  cudaEvent_t last{};  ///< Behind its newest kernel: those of one communicator follow each other.
};

namespace {

struct Half {
  ncclComm_t communicator{};
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  cudaStream_t stream{};
};

struct Group {
  int depth = 0;
  bool broken = false;
  std::vector<Half> sends, receives;
  std::vector<cudaStream_t> streams;  ///< In the order in which they were first mentioned.
};
Group group;

cudaEvent_t recorded(cudaStream_t stream) {
  cudaEvent_t event{};
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
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

/// Runs on the last stream that was first mentioned: it waits for the others, and they wait for its end.
ncclResult_t play(ncclComm_t communicator, const std::vector<Half>& sends, const std::vector<Half>& receives) {
  if (sends.size() != receives.size()) return ncclInvalidUsage;  // A send to itself without its receive.
  const cudaStream_t on = group.streams.back();
  for (const cudaStream_t other : group.streams)
    if (other != on) cudaStreamWaitEvent(on, recorded(other), 0);
  if (communicator->last) cudaStreamWaitEvent(on, communicator->last, 0);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].bytes != receives[i].bytes) return ncclInvalidUsage;
    if (sends[i].from == receives[i].to) continue;  // The real one launches nothing.
    cudaMemcpyAsync(receives[i].to, sends[i].from, sends[i].bytes, cudaMemcpyDeviceToDevice, on);
  }
  communicator->last = recorded(on);
  for (const cudaStream_t other : group.streams)
    if (other != on) cudaStreamWaitEvent(other, communicator->last, 0);
  return ncclSuccess;
}

std::vector<Half> of(const std::vector<Half>& halves, ncclComm_t communicator) {
  std::vector<Half> own;
  std::copy_if(halves.begin(), halves.end(), std::back_inserter(own),
               [&](const Half& h) { return h.communicator == communicator; });
  return own;
}

ncclResult_t finish() {
  const Group all = group;
  std::vector<ncclComm_t> communicators;
  for (const auto* halves : {&all.sends, &all.receives})
    for (const Half& h : *halves)
      if (std::find(communicators.begin(), communicators.end(), h.communicator) == communicators.end())
        communicators.push_back(h.communicator);
  ncclResult_t result = all.broken ? ncclInvalidUsage : ncclSuccess;
  for (const ncclComm_t c : communicators)
    if (result == ncclSuccess) result = play(c, of(all.sends, c), of(all.receives, c));
  group = {};
  return result;
}

ncclResult_t add(Half half, int peer, ncclDataType_t type, bool sends) {
  if (!half.communicator || width(type) == 0) return ncclInvalidArgument;
  const bool alone = group.depth == 0;
  group.broken = group.broken || peer != 0;
  half.bytes *= width(type);
  if (std::find(group.streams.begin(), group.streams.end(), half.stream) == group.streams.end())
    group.streams.push_back(half.stream);
  (sends ? group.sends : group.receives).push_back(half);
  return alone ? finish() : ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "invalid usage (emulated)";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId, int rank, ncclConfig_t* config) {
  if (ranks != 1 || rank != 0) return ncclInvalidUsage;  // Two ranks on one GPU are refused.
  if (config && config->maxCTAs > 0 && (config->maxCTAs & (config->maxCTAs - 1)) != 0) return ncclInvalidArgument;
  *communicator = new ncclComm;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
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
  return add({communicator, from, nullptr, count, stream}, peer, type, true);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add({communicator, nullptr, to, count, stream}, peer, type, false);
}
