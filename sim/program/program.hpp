#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/quantity.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

enum class InstructionKind : std::uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute,
  Update,   // in the order of OpKind
  Predict,  // or reconstruct, right before the op that uses it
  Send,
  Receive,
  AllReduce
};

/// One entry of one stream of one device.
struct Instruction {
  Seconds duration;  ///< Of computation. Communication takes what the network gives it.
  StreamId stream;   ///< Not valid: in no stream, so bound by its dependencies alone.
  DeviceId device;
  StageId stage;  ///< Of communication: the stage that made the data.
  std::int32_t micro =
      0;  ///< Micro-batch of `stage`, counted through the iterations; of Update and AllReduce: its number.
  std::int32_t link = -1;    ///< Send, Receive: index into transfers. AllReduce: index into collectives. Predict: its
                             ///< horizon in updates.
  std::int32_t version = 0;  ///< Weights version that is read, or that a prediction starts from; of Update: written.
  InstructionKind kind = InstructionKind::Forward;
  bool gradient = false;  ///< Communication: a gradient, not an activation. Predict: for a backward.
  WeightsFrom weights = WeightsFrom::Version;  ///< Of computation that reads weights.

  bool is_compute() const { return kind < InstructionKind::Send; }
};
static_assert(sizeof(Instruction) == 40);

/// A message. With rendezvous its receive is the instruction right behind its send.
struct Transfer {
  std::uint64_t bytes = 0;
  InstructionId send, receive;
  std::int32_t route = 0;     ///< Index into Program::routes.
  std::int32_t edge = 0;      ///< Index into the edges of the plan.
  std::int32_t to_micro = 0;  ///< Micro-batch of the stage that uses it.
};

/// An all-reduce among `members` instructions with consecutive ids.
struct Collective {
  std::uint64_t bytes = 0;  ///< Reduced on every member.
  InstructionId first;
  std::int32_t members = 0;
  std::int32_t first_route = 0;  ///< Routes of the ring: member i to the next one, `members` in a row.
  std::int32_t tie = -1;         ///< Of weights that stages share: index into the ties of the plan; else -1.
};

struct RouteEnds {
  DeviceId from, to;
};

enum class StreamKind : std::uint8_t { Compute, Communication, Send, Receive, Collective };

struct Stream {
  DeviceId device;
  StreamKind kind = StreamKind::Compute;
  DeviceId peer;  ///< Valid when the stream serves one peer only.
};

enum class BufferKind : std::uint8_t { Stash, Boundary, Received, Outgoing };

/// Memory that comes and goes: taken when `allocated_by` starts, given back when `freed_by` ends.
struct Buffer {
  Bytes size;
  InstructionId allocated_by, freed_by;
  DeviceId device;
  BufferKind kind = BufferKind::Stash;
};

/// Memory that stays.
struct ResidentMemory {
  Bytes weights, gradients, optimizer;  ///< `weights` counts every buffer.
  int weight_buffers = 0;  ///< Versions, predictions and averages at the worst moment, of all stages on the device.

  Bytes total() const { return weights + gradients + optimizer; }
};

/// The event stream: the contract between planning and every backend.
///
/// Instructions are numbered so that everything an instruction waits for has a smaller number; a backend may start one
/// when all of `waits_for` have ended. Order inside a stream, rendezvous order and FIFO order of sends are all in
/// `waits_for`. With rendezvous a send and its receive start together when both may, and end together; with eager
/// transfers the send goes alone and its receive ends when the data is there. Members of a collective start together.
/// A backend reorders, adds and drops nothing.
struct Program {
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> first_wait;  ///< waits_for(i) is waits[first_wait[i] .. first_wait[i + 1]).
  std::vector<InstructionId> waits;
  std::vector<double> traffic;  ///< Bytes that each op reads and writes of memory that its device shares with others;
                                ///< empty where none does.
  std::vector<Transfer> transfers;
  std::vector<Collective> collectives;
  std::vector<RouteEnds> routes;  ///< Each pair of devices that talk, once; rings of collectives in a row.
  std::vector<Stream> streams;
  std::vector<Buffer> buffers;
  std::vector<ResidentMemory> memory;  ///< Of each device.
  std::vector<int> micro_batches;      ///< Of each stage, in one iteration.
  std::vector<int> updates;            ///< Of each stage, in one iteration.
  std::vector<int> delays;             ///< Of each stage: most updates between a forward and its backward.
  int devices = 0;
  int iterations = 1;
  int mini_batch = 1;   ///< Samples in one iteration.
  int drain_every = 1;  ///< Iterations between two drains; 0: only the end.
  bool rendezvous = true;

  std::size_t size() const { return instructions.size(); }
  std::span<const InstructionId> waits_for(InstructionId i) const {
    return {waits.data() + first_wait[i], waits.data() + first_wait[static_cast<std::size_t>(i) + 1]};
  }
  const Instruction& at(InstructionId i) const { return instructions[i]; }
  /// Number of the update that the gradient of a forward or backward goes into.
  int update_of(const Instruction& i) const {
    const auto s = static_cast<std::size_t>(i.stage);
    return static_cast<int>(static_cast<std::int64_t>(i.micro) * updates[s] / micro_batches[s]);
  }
  int iteration_of(const Instruction& i) const {
    const bool numbered = i.kind == InstructionKind::Update || i.kind == InstructionKind::AllReduce;
    return i.micro / (numbered ? updates : micro_batches)[i.stage];
  }
};

/// Bytes that a ring all-reduce of `bytes` among `members` moves over each edge: 2(n-1)/n of them, in whole bytes.
std::uint64_t ring_bytes(std::uint64_t bytes, std::int32_t members);

char letter(InstructionKind);  ///< Of computation: F B I W R U P.
/// "2F5", "2PF5" (the prediction for it), "0>1:0F2" (the output of 0F2 sent from device 0 to 1), "1<0:0F2" (received),
/// "3AR0" (all-reduce), "3TAR0" (of weights tied between stages; "3T1AR0" of the second such weights).
std::string to_text(const Program&, InstructionId);
/// Every stream as text, one line each.
std::string to_text(const Program&);

}  // namespace stagecraft
