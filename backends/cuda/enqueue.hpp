#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/cooperative_threads.hpp"
#include "backends/cuda/gpu_runtime.hpp"
#include "backends/cuda/instruction_events.hpp"
#include "backends/cuda/messages.hpp"
#include "backends/cuda/ranks/nccl_communicators.hpp"
#include "backends/real/session.hpp"
#include "sim/program/program.hpp"

// Puts the instructions of a Program into CUDA streams in program order; `run` calls it for whole runs, `repeat` for
// iterations.

namespace stagecraft::cuda {

struct EnqueueOptions {
  bool timed = true;                       ///< Otherwise only `ends` are recorded.
  std::function<void(int queue)> keep_up;  ///< Called before more is put into a queue.
  std::vector<EndEvent> ends = {};         ///< Indexed by instruction.
};

/// Enqueues a whole program in the queues of the runtime, each instruction after all that it waits for. `devices` gives
/// the virtual device of each device of the program, -1: not in this process. `ranks` carries messages between GPUs;
/// it may be null.
class Enqueuer {
 public:
  Enqueuer(const Program&, GpuRuntime&, const std::vector<int>& devices, Messages&, EnqueueOptions,
           NcclCommunicators* ranks = nullptr);

  /// Enqueues the first `count` instructions. It may be called again after the previous run has ended.
  void run(real::Session&, InstructionEvents&, std::size_t count);

  /// Together these do what run() does: open() prepares, put() enqueues instructions that are in program order.
  void open(real::Session&, InstructionEvents&);
  void put(std::span<const InstructionId>);
  /// The instruction does the same work as an iteration ago, in a graph.
  void repeat(InstructionId);
  /// The communicator of devices that meet inside of instructions.
  std::unique_ptr<real::GroupCommunicator> communicator(const std::vector<DeviceId>&);
  /// Makes everything enqueued later wait for everything enqueued so far, which is then forgotten.
  /// `ends_iteration`: its event is one of InstructionEvents::iterations.
  void barrier(bool ends_iteration);
  /// Reads the times of iterations that are over; without barriers, if all their instructions are below `next`.
  void read_finished(InstructionId next = {});
  void keep_up(int queue);
  /// To be called again and again where the host waits.
  void give_way() { threads_.give_way(); }
  double waited() const {
    return waited_ + runtime_.launch_limit().waited();
  }  ///< Seconds spent waiting until queues were short enough.

 private:
  IdVector<StreamId, StreamId> streams_that_carry() const;
  int queue_of(const Instruction&, DeviceId peer);
  static std::pair<int, int> free_key(DeviceId local, DeviceId peer, bool sends) {
    return {2 * static_cast<int>(local.value) + sends, static_cast<int>(peer.value)};
  }
  int free_queue(DeviceId local, DeviceId peer, bool sends);
  bool here(const Instruction& i) const { return device(i.device) >= 0; }
  bool apart(const Transfer& t) const { return ranks_ && ranks_->apart(t); }
  int device(DeviceId d) const { return devices_[d.value]; }
  void open_queues();
  void open_gates();
  void put(InstructionId);
  void put_together(std::span<const InstructionId> unit);
  void compute(InstructionId);
  void end_part(InstructionId computation, InstructionId member);
  void rendezvous(int transfer);
  void send(int transfer);
  void receive(int transfer);
  void collective(int index, InstructionId);
  void all_reduce(int collective);

  void wait_for_inputs(int queue, InstructionId);
  SharedEvent* mark(int queue, bool timed);
  SharedEvent* mark_inside(int queue, InstructionId);
  void begin(int queue, const std::vector<InstructionId>&);
  void end(int queue, const std::vector<InstructionId>&);
  void carry(int transfer, int queue);
  void carry_apart(int transfer, int sender, int receiver);
  void compute_results(int index);
  void put_part(int index, int rank, const real::SafeStep&, real::Tensor output);
  void hand(int collective, InstructionId from, InstructionId to, void* data, void* target, std::size_t bytes);
  void call_nccl(const std::vector<MessageEnd>&, std::function<void()> calls);
  bool shares_stream(const CollectiveCall&, int rank) const;
  bool first_reaches_all(const CollectiveCall&) const;
  void take_turns(InstructionId first, InstructionId second);
  bool apart(InstructionId, InstructionId) const;
  bool reaches(InstructionId, InstructionId) const;
  void work_on(DeviceId d, int queue) { runtime_.use(device(d), queue); }
  void work_alone(DeviceId d) { runtime_.use(device(d), runtime_.compute_queue(device(d))); }

  const Program& p_;
  GpuRuntime& runtime_;
  const std::vector<int>& devices_;
  Messages& messages_;
  NcclCommunicators* ranks_;
  CooperativeThreads threads_;
  bool has_groups_ = false;
  EnqueueOptions options_;
  real::Session* session_ = nullptr;
  InstructionEvents* events_ = nullptr;
  IdVector<StreamId, int> queue_of_stream_;
  std::map<std::pair<int, int>, int> free_queues_;  ///< Queues for messages without a stream, by device and peer.
  std::vector<Point> ended_;                        ///< End of each instruction.
  std::map<std::pair<InstructionId, InstructionId>, Point>
      parts_done_;  ///< Where a member of a collective need not wait for the end of a computation: where it waits.
  std::vector<int> fresh_;                  ///< Instructions since the last barrier.
  std::vector<std::vector<int>> unmarked_;  ///< Instructions of each queue since its last event.
  double waited_ = 0;
  int newest_ = 0;              ///< The newest iteration with an instruction that was enqueued.
  std::vector<Point> arrived_;  ///< Arrival of each eager message between GPUs.
};

}  // namespace stagecraft::cuda
