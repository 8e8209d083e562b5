// The NCCL communicators of a run over several GPUs: which GPUs share one, the calls for messages and sums, errors and
// shutdown.

#include "backends/cuda/ranks/nccl_communicators.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include <fmt/core.h>

#include "backends/cuda/launch_limit.hpp"

namespace stagecraft::cuda {
namespace {

constexpr double kCapturePatience = 60;  // Seconds.

/// Messages of one key share a communicator, so they follow each other.
using Key = std::tuple<DeviceId, DeviceId, bool>;

Key key_of(const Program& p, const Transfer& t) {
  const Instruction &send = p.at(t.send), &receive = p.at(t.receive);
  const Key direction{send.device, receive.device, true};
  if (!send.stream.valid()) return direction;
  const Stream& stream = p.streams[send.stream];
  if (stream.kind == StreamKind::Compute || !stream.peer.valid()) return {DeviceId{}, DeviceId{}, false};
  if (stream.kind != StreamKind::Communication) return direction;
  return {std::min(send.device, receive.device), std::max(send.device, receive.device), false};
}

}  // namespace

NcclCommunicators::NcclCommunicators(const Program& program, std::vector<GpuSlot> slots, int process, ByNccl by_nccl)
    : p_(program), slots_(std::move(slots)), process_(process), by_nccl_(by_nccl), max_ctas_(by_nccl.max_ctas) {
  plan_links();
}

void NcclCommunicators::connect(const std::vector<std::vector<DeviceId>>& groups, const GatherTexts& gather) {
  plan_groups(groups);
  if (max_ctas_ == 0) max_ctas_ = ctas_that_fit();
  share_unique_ids(gather);
}

NcclCommunicators::~NcclCommunicators() {
  if (aborted_) return;
  nccl_.ncclGroupStart();
  for (const Link& link : links_)
    for (const ncclComm_t c : link.ranks)
      if (c) nccl_.ncclCommFinalize(c);
  nccl_.ncclGroupEnd();
  finalized();
  for (const Link& link : links_)
    for (const ncclComm_t c : link.ranks)
      if (c) state_of(c) == ncclSuccess ? nccl_.ncclCommDestroy(c) : nccl_.ncclCommAbort(c);
}

/// Waits for some seconds: NCCL refuses to destroy what is not through, and then starts nothing more in this process.
void NcclCommunicators::finalized() const noexcept try {
  at_most(10)([this] {
    for (const Link& link : links_)
      for (const ncclComm_t c : link.ranks)
        if (c && state_of(c) == ncclInProgress) return false;
    return true;
  });
} catch (...) {  // ~NcclCommunicators() aborts communicators that are not through.
}

ncclResult_t NcclCommunicators::state_of(ncclComm_t c) const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl_.ncclCommGetAsyncError(c, &state);
  return asked == ncclSuccess ? state : asked;
}

bool NcclCommunicators::apart(DeviceId a, DeviceId b) const {
  return slot(a).process != slot(b).process || (by_nccl_.messages && slot(a).gpu != slot(b).gpu);
}

int NcclCommunicators::Link::rank(const GpuSlot& s) const {
  return static_cast<int>(std::lower_bound(slots.begin(), slots.end(), s) - slots.begin());
}

int NcclCommunicators::add_link(const std::set<GpuSlot>& slots) {
  links_.push_back({{slots.begin(), slots.end()}, std::vector<ncclComm_t>(slots.size(), nullptr)});
  return static_cast<int>(links_.size()) - 1;
}

/// Computes equal links in all processes, because it depends only on the program and the GPU slots.
void NcclCommunicators::plan_links() {
  std::map<Key, std::set<GpuSlot>> pairs;
  for (const Transfer& t : p_.transfers)
    if (apart(t)) pairs[key_of(p_, t)].insert({slot(p_.at(t.send).device), slot(p_.at(t.receive).device)});
  std::set<std::set<GpuSlot>> rings;
  std::vector<std::set<GpuSlot>> ring_of;
  for (const CollectiveCall& c : p_.collectives) {
    std::set<GpuSlot>& ring = ring_of.emplace_back();
    if (!needs_ring(c)) continue;
    if (by_nccl_.sums) require_gpus(c);
    for (int m = 0; m < c.members; ++m) ring.insert(slot(p_.at(c.member(m)).device));
    rings.insert(ring);
  }
  std::map<Key, int> link_of_pair;
  for (const auto& [key, slots] : pairs) link_of_pair[key] = add_link(slots);
  std::map<std::set<GpuSlot>, int> link_of_ring;
  for (const auto& ring : rings) link_of_ring[ring] = add_link(ring);
  for (const Transfer& t : p_.transfers) of_transfer_.push_back(apart(t) ? link_of_pair.at(key_of(p_, t)) : -1);
  for (const auto& ring : ring_of) of_collective_.push_back(ring.empty() ? -1 : link_of_ring.at(ring));
}

/// Two groups on the same GPUs have two communicators: the exchanges of one group come in one order on all of its
/// members, but exchanges of two groups do not.
void NcclCommunicators::plan_groups(const std::vector<std::vector<DeviceId>>& groups) {
  for (const std::vector<DeviceId>& group : groups) {
    std::set<GpuSlot> slots;
    bool is_apart = false;
    for (const DeviceId d : group) {
      slots.insert(slot(d));
      is_apart = is_apart || slot(d).process != slot(group.front()).process;
    }
    if (is_apart && !of_group_.contains(group)) of_group_[group] = add_link(slots);
  }
}

/// Thread blocks for each communicator, so that the kernels of all communicators of a GPU can run at the same time:
/// kernels that wait for other GPUs would else keep each other out. All processes compute the same number.
int NcclCommunicators::ctas_that_fit() const {
  constexpr int kMost = 16, kBlocksOfGpu = 128;  // One block for each multiprocessor of an A100, H100 or H200.
  std::map<GpuSlot, int> communicators;
  int peak = 1;
  for (const Link& link : links_)
    for (const GpuSlot& s : link.slots) peak = std::max(peak, ++communicators[s]);
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(kBlocksOfGpu / peak, 1, kMost))));
}

bool NcclCommunicators::needs_ring(const CollectiveCall& c) const {
  bool any = by_nccl_.sums && c.members > 1;
  const DeviceId first = p_.at(c.first).device;
  for (int m = 1; m < c.members; ++m) any = any || apart(first, p_.at(c.member(m)).device);
  return any;
}

void NcclCommunicators::require_gpus(const CollectiveCall& c) const {
  std::map<GpuSlot, DeviceId> taken;
  for (int m = 0; m < c.members; ++m) {
    const DeviceId device = p_.at(c.member(m)).device;
    const auto [other, fresh] = taken.try_emplace(slot(device), device);
    if (fresh) continue;
    throw InputError(
        fmt::format("devices {} and {} of the plan, whose gradients an all-reduce of NCCL is to add up, share GPU {}, "
                    "which NCCL takes once",
                    other->second.value, device.value, slot(device).gpu),
        "run.gpu.sums: ordered, or a GPU for each device");
  }
}

/// The process of a link's first rank makes its unique id and sends it to the others.
void NcclCommunicators::share_unique_ids(const GatherTexts& gather) {
  std::string ids;
  for (const Link& link : links_) {
    if (link.slots.front().process != process_) continue;
    ncclUniqueId id;
    require(nccl_, nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    ids.append(id.internal, sizeof id.internal);
  }
  const std::vector<std::string> received = gather(ids);
  std::vector<std::size_t> next(received.size(), 0);
  for (Link& link : links_) {
    const std::size_t first = link.slots.front().process;
    STAGECRAFT_CHECK(next[first] + sizeof link.id.internal <= received[first].size());
    std::memcpy(link.id.internal, received[first].data() + next[first], sizeof link.id.internal);
    next[first] += sizeof link.id.internal;
  }
}

/// Opens links in the same order in all processes, so that processes cannot deadlock.
void NcclCommunicators::open(const WaitPolicy& until) {
  until_ = until;
  for (Link& link : links_) open(link);
}

void NcclCommunicators::open(Link& link) {
  const auto is_own = [this](const GpuSlot& s) { return s.process == process_; };
  if (std::none_of(link.slots.begin(), link.slots.end(), is_own)) return;
  group(nccl_, [&] {
    for (std::size_t r = 0; r < link.slots.size(); ++r)
      if (link.slots[r].process == process_)
        begin_rank(nccl_, link.slots[r].gpu, link.id, static_cast<int>(r), static_cast<int>(link.slots.size()),
                   max_ctas_, link.ranks[r]);
  });
  wait_for(link);
}

void NcclCommunicators::carry(int transfer, const std::vector<MessageEnd>& ends) { move(of_transfer_[transfer], ends); }

void NcclCommunicators::share(int collective, const std::vector<MessageEnd>& ends) {
  move(of_collective_[collective], ends);
}

void NcclCommunicators::move(int at, const std::vector<MessageEnd>& ends) {
  const Link& link = links_[at];
  group(nccl_, [&] {
    for (const MessageEnd& h : ends) {
      if (h.bytes == 0) continue;
      const ncclComm_t communicator = link.ranks[link.rank(slot(h.here))];
      const int peer = link.rank(slot(h.there));
      h.sends ? require(nccl_, nccl_.ncclSend(h.data, h.bytes, ncclInt8, peer, communicator, h.stream), "ncclSend")
              : require(nccl_, nccl_.ncclRecv(h.data, h.bytes, ncclInt8, peer, communicator, h.stream), "ncclRecv");
    }
  });
  wait_for(link, ends.front().stream);
}

/// The members of this process share one group: otherwise this thread would block in the first member's call.
void NcclCommunicators::sum(int collective, std::size_t width, const std::vector<Summand>& summands) {
  const Link& link = links_[of_collective_[collective]];
  const ncclDataType_t type = width == sizeof(double) ? ncclFloat64 : ncclFloat32;
  group(nccl_, [&] {
    for (const Summand& s : summands) {
      if (s.numbers == 0) continue;
      const ncclComm_t communicator = link.ranks[link.rank(slot(s.here))];
      require(nccl_, nccl_.ncclAllReduce(s.data, s.data, s.numbers, type, ncclSum, communicator, s.stream),
              "ncclAllReduce");
    }
  });
  wait_for(link, summands.front().stream);
}

/// The first message between two GPUs waits on the host until the other has come to it. In a capture that is over, and
/// whoever looks at events ends a capture.
void NcclCommunicators::wait_for(const Link& link, cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (stream) check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  const WaitPolicy until = status == cudaStreamCaptureStatusNone ? until_ : at_most(kCapturePatience);
  for (const ncclComm_t c : link.ranks)
    if (c) cuda::wait_for(nccl_, c, until);
}

std::string NcclCommunicators::why_no_graph() const {
  if (!any()) return "";
  std::map<int, std::set<int>> gpus;
  std::map<int, int> devices;
  for (const GpuSlot& s : slots_)
    if (s.process >= 0) gpus[s.process].insert(s.gpu), ++devices[s.process];
  for (const auto& [process, of_process] : gpus) {
    if (of_process.size() > 1) return "a graph with NCCL is on one GPU, and a process has several";
    if (!of_group_.empty() && devices[process] > 1)
      return "groups are in several processes, and a process has several devices, whose exchanges come in no common "
             "order";
  }
  return "";
}

void NcclCommunicators::require_sound() const {
  for (const Link& link : links_)
    for (const ncclComm_t c : link.ranks) {
      ncclResult_t state = ncclSuccess;
      if (c) require(nccl_, nccl_.ncclCommGetAsyncError(c, &state), "ncclCommGetAsyncError");
      require(nccl_, state, "NCCL");
    }
}

void NcclCommunicators::abort() noexcept {
  if (aborted_) return;
  aborted_ = true;
  for (const Link& link : links_)
    for (const ncclComm_t c : link.ranks)
      if (c) nccl_.ncclCommAbort(c);
}

std::vector<int> NcclCommunicators::gpus() const {
  std::vector<int> gpus;
  for (const Link& link : links_)
    for (const GpuSlot& s : link.slots)
      if (s.process == process_) gpus.push_back(s.gpu);
  return gpus;
}

namespace {

/// Streams of each GPU, with the two of each communicator: one for the device and one for the host (NCCL 2.28).
std::map<int, int> streams_of_gpus(const Queues& queues, const std::vector<int>& communicators) {
  constexpr int kOfNccl = 2;
  std::map<int, int> streams;
  for (int q = 0; q < queues.size(); ++q) ++streams[queues.gpu(q)];
  for (const int gpu : communicators) streams[gpu] += kOfNccl;
  return streams;
}

}  // namespace

void require_queues(const Queues& queues, const std::vector<int>& communicators) {
  for (const auto& [gpu, count] : streams_of_gpus(queues, communicators))
    if (count > LaunchLimit::kHardwareQueues)
      throw InputError(
          fmt::format(
              "GPU {} would have {} streams, including the streams of {} NCCL communicators, but has {} hardware "
              "queues: NCCL messages in streams that share a queue could deadlock",
              gpu, count, std::count(communicators.begin(), communicators.end(), gpu), LaunchLimit::kHardwareQueues),
          "run.streams: single or pair, or run.gpu: {messages: copy, sums: ordered}");
}

std::string queue_warning(const Queues& queues, const std::vector<int>& communicators) {
  for (const auto& [gpu, count] : streams_of_gpus(queues, communicators))
    if (count > LaunchLimit::kHardwareQueues)
      return fmt::format("GPU {} has {} streams in {} hardware queues: work of one stream may wait for another's", gpu,
                         count, LaunchLimit::kHardwareQueues);
  return {};
}

}  // namespace stagecraft::cuda
