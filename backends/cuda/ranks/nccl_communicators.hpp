#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/libraries.hpp"
#include "backends/cuda/queues.hpp"
#include "backends/cuda/ranks/gpu_slots.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// One end of a message, on a stream of the GPU that it is on.
struct MessageEnd {
  DeviceId here, there;
  void* data = nullptr;
  std::size_t bytes = 0;
  bool sends = false;
  cudaStream_t stream{};
};

/// What a device brings to a sum; the result overwrites it.
struct Summand {
  DeviceId here;
  void* data = nullptr;
  std::size_t numbers = 0;
  cudaStream_t stream{};
};

/// What NCCL does in addition to messages between processes.
struct ByNccl {
  bool messages = false;  ///< Between GPUs of one process.
  bool sums = false;      ///< All-reduces of collectives, instead of messages between their members.
  int max_ctas = 0;       ///< Thread blocks of a kernel, a power of two; 0: as many as fit, at most 16.
};

/// Tells all processes some bytes and hears theirs, in the order of the processes.
using GatherTexts = std::function<std::vector<std::string>(const std::string&)>;

/// NCCL between GPUs, of this process and of others. As the program has streams there is one communicator for all, one
/// for each pair of GPUs or one for each direction; one for the members of each kind of collective; and one for the
/// devices of each group that is in several processes.
///
/// Kernels of a communicator follow each other in the order in which they are enqueued. All processes enqueue in the
/// order of the program's numbers, in which nothing waits for what comes later, so the first piece of work that is not
/// over can always go on.
class NcclCommunicators {
 public:
  /// InputError when members of a sum share a GPU.
  NcclCommunicators(const Program&, std::vector<GpuSlot> slots, int process, ByNccl);
  /// For a program without groups.
  NcclCommunicators(const Program& program, std::vector<GpuSlot> slots, int process, ByNccl by_nccl,
                    const GatherTexts& gather)
      : NcclCommunicators(program, std::move(slots), process, by_nccl) {
    connect({}, gather);
  }
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;
  ~NcclCommunicators();

  bool any() const { return !links_.empty(); }  ///< Whether it has anything to do.
  std::vector<int> gpus() const;                ///< The GPU of each rank of this process, over all communicators.
  /// All processes come here at the same time with the same groups, and then to open().
  void connect(const std::vector<std::vector<DeviceId>>& groups, const GatherTexts&);
  void open(const WaitPolicy&);  ///< Before anything is carried.

  /// Whether it goes from GPU to GPU here, each end on a stream of its own.
  bool apart(const Transfer& t) const { return apart(p_.at(t.send).device, p_.at(t.receive).device); }
  bool apart(DeviceId, DeviceId) const;
  bool sums() const { return by_nccl_.sums; }
  int max_ctas() const { return max_ctas_; }

  /// Why kernels of NCCL cannot be in graphs of iterations; empty: they can. The answer is the same in all processes.
  std::string why_no_graph() const;

  /// Carries both ends of a message, or the one that is here; the k-th send meets the k-th receive.
  void carry(int transfer, const std::vector<MessageEnd>&);
  void share(int collective, const std::vector<MessageEnd>&);
  /// Carries arrays between the members of a group that is in several processes.
  void exchange(const std::vector<DeviceId>& group, const std::vector<MessageEnd>& ends) {
    move(of_group_.at(group), ends);
  }
  /// Runs one all-reduce among all members, of numbers of `width` bytes; the members here go into one NCCL group.
  void sum(int collective, std::size_t width, const std::vector<Summand>&);

  /// Sets how to wait for NCCL calls to complete.
  void wait_by(WaitPolicy until) { until_ = std::move(until); }
  /// BackendError when NCCL has noticed that something went wrong on the way.
  void require_sound() const;
  /// Ends what waits for others on the GPUs here; nothing may follow.
  void abort() noexcept;

 private:
  struct Link {
    std::vector<GpuSlot> slots;     ///< Rank by rank.
    std::vector<ncclComm_t> ranks;  ///< Null for ranks of other processes.
    ncclUniqueId id{};
    int rank(const GpuSlot&) const;
  };
  const GpuSlot& slot(DeviceId d) const { return slots_[d]; }
  int add_link(const std::set<GpuSlot>&);
  void plan_links();
  void plan_groups(const std::vector<std::vector<DeviceId>>& groups);
  int ctas_that_fit() const;
  void share_unique_ids(const GatherTexts&);
  void open(Link&);
  bool needs_ring(const CollectiveCall&) const;
  void require_gpus(const CollectiveCall&) const;
  void move(int link, const std::vector<MessageEnd>&);
  void wait_for(const Link&, cudaStream_t = nullptr);
  void finalized() const noexcept;
  ncclResult_t state_of(ncclComm_t) const;

  const Program& p_;
  IdVector<DeviceId, GpuSlot> slots_;
  int process_;
  ByNccl by_nccl_;
  int max_ctas_;
  WaitPolicy until_;
  Nccl nccl_;
  std::vector<Link> links_;
  std::vector<int> of_transfer_, of_collective_;  ///< Indices of links; -1: none is needed.
  std::map<std::vector<DeviceId>, int> of_group_;
  bool aborted_ = false;
};

/// InputError when a GPU has more streams, including the ones of the communicators on these GPUs, than hardware queues:
/// streams that share a queue wait for each other, so a wait for another GPU could deadlock.
void require_queues(const Queues&, const std::vector<int>& communicators);
/// What require_queues() would refuse, as a warning about measured times; empty if there are enough queues.
std::string queue_warning(const Queues&, const std::vector<int>& communicators);

}  // namespace stagecraft::cuda
