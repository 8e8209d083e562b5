#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"
#include "sim/cost/cost_rules.hpp"
#include "sim/program/collective.hpp"
#include "sim/schedule/op_kind.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

enum class InstructionKind : std::uint8_t {
  Forward = value_of(OpKind::Forward),
  Backward = value_of(OpKind::Backward),
  InputGradient = value_of(OpKind::InputGradient),
  WeightGradient = value_of(OpKind::WeightGradient),
  Recompute = value_of(OpKind::Recompute),
  Update = value_of(OpKind::Update),
  Scores = value_of(OpKind::Scores),
  ScoresGradient = value_of(OpKind::ScoresGradient),
  Predict = kOpKindCount,  // or reconstruct, right before the op that uses it
  Send,
  Receive,
  Collective
};

inline constexpr std::size_t kInstructionKindCount = static_cast<std::size_t>(InstructionKind::Collective) + 1;

constexpr InstructionKind instruction_kind(OpKind kind) { return static_cast<InstructionKind>(kind); }
/// The op that an instruction runs; nothing for a prediction and for communication.
constexpr std::optional<OpKind> op_kind(InstructionKind kind) {
  return kind < InstructionKind::Predict ? std::optional(static_cast<OpKind>(kind)) : std::nullopt;
}

/// How people and files see every kind of instruction. One collective is called by its own name where that is known.
const WorkLabel& label(InstructionKind);
inline char letter(InstructionKind kind) { return label(kind).letter; }  ///< The kind must be computation.
/// The kind after another, for loops over all of them.
constexpr InstructionKind next_kind(InstructionKind kind) {
  return static_cast<InstructionKind>(static_cast<std::uint8_t>(kind) + 1);
}

/// One entry of one stream of one device. `number` and `payload` have one meaning for each kind, so they are read
/// through the accessors here and in Program, which check the kind.
struct Instruction {
  Seconds duration;  ///< Time of computation, and of a collective without phases, whose cost is known beforehand. Other
                     ///< communication takes what the network gives it.
  StreamId stream;   ///< Not valid: in no stream, so bound by its dependencies alone.
  DeviceId device;
  StageId stage;            ///< For communication: the stage that made the data.
  std::int32_t number = 0;  ///< Micro-batch of `stage`, counted through the iterations; Update, Collective: the update.
  std::int32_t payload = -1;  ///< Version of the weights, or the index of a prediction, transfer or collective.
  InstructionKind kind = InstructionKind::Forward;
  WeightsFrom weights = WeightsFrom::Version;  ///< Used by computation that reads weights.

  bool is_compute() const { return kind < InstructionKind::Send; }
  bool is_message() const { return kind == InstructionKind::Send || kind == InstructionKind::Receive; }
  bool is_numbered_by_update() const { return kind == InstructionKind::Update || kind == InstructionKind::Collective; }

  int micro_batch() const { return require(!is_numbered_by_update()), number; }
  int update() const { return require(is_numbered_by_update()), number; }
  /// Version of the weights that a forward or backward reads, or that an update makes.
  int version() const { return require(kind < InstructionKind::Predict), payload; }
  int prediction() const { return require(kind == InstructionKind::Predict), payload; }
  int transfer() const { return require(is_message()), payload; }
  int collective() const { return require(kind == InstructionKind::Collective), payload; }

 private:
  static void require(bool right) {
    if (!right) throw_wrong_kind();
  }
  [[noreturn]] static void throw_wrong_kind();
};
static_assert(sizeof(Instruction) == 32);

/// Payload of Predict: weights `horizon` updates after a version, for the op right after it.
struct Prediction {
  std::int32_t version = 0;  ///< The version that it starts from.
  std::int32_t horizon = 0;
  bool for_backward = false;
};

/// Samples of a tensor; a sample has the same number of rows in all micro-batches.
struct RowRange {
  std::int64_t first = 0, count = 0;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// A tensor that flows over an edge of the plan forward, or its gradient that comes back.
enum class TensorRole : std::uint8_t { Activation, Gradient };

/// What a transfer moves, and between whom. Transfers that differ in their micro-batches alone share one.
struct TransferShape {
  std::uint64_t bytes = 0;
  std::int32_t route = 0;  ///< Index into Program::routes.
  std::int32_t edge = 0;   ///< Index into Program::edges; all tensors that cross it go in one message.
  TensorRole role = TensorRole::Activation;
  RowRange rows{0, 1};  ///< Counted from the first sample of the micro-batch that makes them.
};

/// A message. With rendezvous its receive is the instruction right after its send.
struct Transfer {
  InstructionId send, receive;
  /// The op that makes the data and the one after which they are not needed; not valid: they take no memory.
  InstructionId producer, consumer;
  std::int32_t shape = 0;  ///< Index into Program::transfer_shapes.
};

/// Stages that exchange tensors: activations go forward, their gradients come back.
struct EdgeEnds {
  StageId from, to;
};

enum class StreamKind : std::uint8_t { Compute, Communication, Send, Receive, Collective, Copy };

struct Stream {
  DeviceId device;
  StreamKind kind = StreamKind::Compute;
  DeviceId peer;  ///< Valid when the stream serves one peer only.
};

enum class BufferKind : std::uint8_t { Stash, Boundary, Received, Outgoing, Host };

/// Memory that comes and goes: allocated when `allocated_by` starts, freed when `freed_by` ends. A Host buffer is in
/// the memory of the host of the device.
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

struct Workload;

/// Where the planned time of each kind of op of a stage goes.
struct StageParts {
  EachPass<TimeByClass> passes;
  TimeByClass update;
  TimeByClass scores, scores_gradient;  ///< The part of the vocabulary that its rank has.

  const TimeByClass& parts(InstructionKind) const;
};

/// What the model does for one sample, on what: for the rates by which people compare runs.
struct ModelWork {
  Flops flops;                 ///< Forward and backward, without recomputation.
  double tokens = 0;           ///< Zero where samples have none.
  double samples_of_pack = 1;  ///< Sequences in place of a sample, in the mean, where micro-batches are packs of them.
  int devices = 0;             ///< All that take part.
  FlopRate peak;               ///< Sum over these devices, in the number format of the run.
};

/// The event stream: the contract between planning and every backend.
///
/// Instructions are numbered so that everything an instruction waits for has a smaller number; a backend may start one
/// when all of `waits_for` have ended; a collective with a share `after` waits for that share of computations. Order
/// inside a stream, rendezvous order and FIFO order of sends are all in `waits_for`. With rendezvous a send and its
/// receive start together when both may, and end together; simulated handshakes add a word before the start, that the
/// receive may start, and one before the end of the send, that the data is there. With eager transfers the send goes
/// alone and its receive ends when the data is there. Members of a collective start together. A backend reorders, adds
/// and drops nothing.
struct Program {
  IdVector<InstructionId, Instruction> instructions;
  std::vector<std::uint32_t> first_wait;  ///< waits_for(i) is waits[first_wait[i] .. first_wait[i + 1]).
  std::vector<InstructionId> waits;
  IdVector<InstructionId, double> traffic;  ///< Bytes that each op reads and writes of memory that its device shares
                                            ///< with others; empty where none does.
  std::vector<Prediction> predictions;
  std::vector<Transfer> transfers;
  std::vector<TransferShape> transfer_shapes;
  std::vector<CollectiveCall> collectives;
  std::vector<CollectiveShape> collective_shapes;
  std::vector<CollectivePhase> phases;  ///< The phases of a shape are consecutive.
  std::vector<RouteEnds> routes;        ///< Each pair that talks, once; routes of a phase are consecutive.
  std::vector<EdgeEnds> edges;          ///< The edges of the plan.
  IdVector<StreamId, Stream> streams;
  std::vector<Buffer> buffers;  ///< Buffers of ops; buffer() also knows the buffers of messages.
  IdVector<DeviceId, ResidentMemory> memory;
  std::vector<Bytes> host_states;        ///< [index in Cluster::memories]: states of the optimizer there; empty: none.
  IdVector<StageId, int> micro_batches;  ///< Count in one iteration.
  IdVector<StageId, int> updates;        ///< Count in one iteration.
  IdVector<StageId, int> delays;         ///< Most updates between a forward and its backward.
  std::shared_ptr<const Workload> workload;  ///< What is computed; null where nothing really is.
  IdVector<StageId, StageParts> parts;       ///< Empty where costs do not tell classes of time apart.
  ModelWork work;                            ///< Zero where the model's operations are not known.
  IdVector<DeviceId, DeviceId> leaders;      ///< The device whose instructions stand for each device; not valid: those
                                             ///< of several devices do. Empty: all have their own.
  int group = 1;  ///< Devices that a device with instructions stands for, itself included: the most of any.
  IdVector<DeviceId, int> group_sizes;  ///< That number for each device; empty where all have one number.
  int devices = 0;
  int iterations = 1;
  int load_iterations = 1;  ///< Iterations after which the loads of micro-batches repeat: 1, all are alike.
  int mini_batch = 1;       ///< Samples, or packs, in one iteration, of all copies.
  int copies = 1;           ///< Equal sets of replicas, one of which has instructions and stands for the others.
  /// The device of each set that does what a device with instructions does, itself first. Empty without copies, and
  /// where only totals are asked for: then the devices of the other sets have no numbers.
  std::map<DeviceId, std::vector<DeviceId>> counterparts;
  int drain_every = 1;  ///< Iterations between two drains; 0: only the end.
  bool rendezvous = true;
  bool handshakes = false;  ///< With rendezvous: each word between both ends takes the latency of the route.

  std::size_t size() const { return instructions.size(); }
  /// Samples in one iteration, of all copies, also where several are a pack.
  double samples() const { return mini_batch * work.samples_of_pack; }
  std::span<const InstructionId> waits_for(InstructionId i) const {
    return {waits.data() + first_wait[i.value], waits.data() + first_wait[i.value + 1]};
  }
  const Instruction& at(InstructionId i) const { return instructions[i]; }
  const Transfer& transfer(const Instruction& i) const { return transfers[i.transfer()]; }
  const TransferShape& shape(const Transfer& t) const { return transfer_shapes[t.shape]; }
  const TransferShape& shape(const Instruction& i) const { return shape(transfer(i)); }
  std::uint64_t bytes(const Transfer& t) const { return shape(t).bytes; }
  const RouteEnds& ends(const Transfer& t) const { return routes[shape(t).route]; }
  /// A route, and those between the counterparts of its ends.
  std::vector<RouteEnds> copies_of(const RouteEnds&) const;
  /// Memory of messages and ops by number: the outgoing and the received copy of each transfer, then `buffers`.
  Buffer buffer(std::uint32_t number) const;
  /// buffer() for a caller that knows its device, which avoids reading the instruction.
  Buffer buffer_on(DeviceId, std::uint32_t number) const;
  const CollectiveCall& collective(const Instruction& i) const { return collectives[i.collective()]; }
  const Prediction& prediction(const Instruction& i) const { return predictions[i.prediction()]; }
  /// Whether the message carries gradients, not activations.
  bool moves_gradient(const Instruction& i) const { return i.is_message() && shape(i).role == TensorRole::Gradient; }
  /// The version that the instruction reads, makes or predicts from; 0 for communication.
  int version_of(const Instruction& i) const {
    if (!i.is_compute()) return 0;
    return i.kind == InstructionKind::Predict ? prediction(i).version : i.version();
  }

  /// The number in the name of an instruction: of the micro-batch, or of the update.
  int shown_number(const Instruction& i) const;
  /// The share of the time of an op in collectives of its group that the op contains; 0 where costs do not tell.
  double share_in_collectives(const Instruction& i) const;

  /// Samples of a micro-batch in one copy.
  int micro_batch_size(StageId s) const { return mini_batch / (copies * micro_batches[s]); }
  /// Samples that a message moves, counted through the run. Both sides find their own offset by subtracting the first
  /// sample that they hold.
  RowRange rows(const Transfer& t) const {
    const Instruction& send = at(t.send);
    const RowRange& rows = shape(t).rows;
    return {std::int64_t{send.number} * micro_batch_size(send.stage) + rows.first, rows.count};
  }
  StageId receiving_stage(const Transfer& t) const {
    const EdgeEnds& edge = edges[shape(t).edge];
    return shape(t).role == TensorRole::Gradient ? edge.from : edge.to;
  }
  /// The micro-batch of the receiving stage that the message is for.
  int receiving_micro_batch(const Transfer& t) const {
    return static_cast<int>(rows(t).first / micro_batch_size(receiving_stage(t)));
  }
  const CollectiveShape& shape(const CollectiveCall& c) const { return collective_shapes[c.shape]; }
  std::span<const CollectivePhase> phases_of(const CollectiveCall& c) const {
    const CollectiveShape& group_shape = shape(c);
    return std::span(phases).subspan(group_shape.first_phase, group_shape.phases);
  }

  /// Number of the update that the gradient of a forward or backward goes into.
  int update_of(const Instruction& i) const {
    return static_cast<int>(std::int64_t{i.micro_batch()} * updates[i.stage] / micro_batches[i.stage]);
  }
  int iteration_of(const Instruction& i) const {
    return i.number / (i.is_numbered_by_update() ? updates : micro_batches)[i.stage];
  }
};

/// Whether a copy of a stash comes from host memory.
bool goes_up(const Program&, const CollectiveCall& copy);

/// Writes the phases of a collective and their routes, and returns the index of the new shape.
std::int32_t add_shape(Program&, CollectiveKind, const CollectiveAlgorithm&, const DeviceGroup&, std::uint64_t bytes);
/// The shape of several groups of one size that run it at the same time.
std::int32_t add_shape(Program&, CollectiveKind, const CollectiveAlgorithm&, const std::vector<DeviceGroup>&,
                       std::uint64_t bytes);

/// Gives each device the value of the one that has instructions in its place.
template <class T>
void copy_to_counterparts(const Program& program, IdVector<DeviceId, T>& values) {
  for (const auto& [device, devices] : program.counterparts)
    for (const DeviceId other : devices)
      if (other != device) values[other] = values[device];
}

/// Calls visit(number, device) for each buffer of a program, in the order of the instructions that end with it or, for
/// what is received, bring it.
template <class Visit>
void for_each_buffer(const Program& program, Visit&& visit) {
  const auto first = static_cast<std::uint32_t>(2 * program.transfers.size());
  std::uint32_t next = 0;
  const auto ends_by = [&](InstructionId n) {
    return next < program.buffers.size() && program.buffers[next].freed_by <= n;
  };
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    if (i.is_message() && program.transfers[i.payload].producer.valid())
      visit(static_cast<std::uint32_t>(2 * i.payload + (i.kind == InstructionKind::Receive)), i.device);
    if (i.is_compute())
      for (; ends_by(n); ++next) visit(first + next, program.buffers[next].device);
  }
  for (; next < program.buffers.size(); ++next) visit(first + next, program.buffers[next].device);
}

/// "2F5", "2PF5" (the prediction for it), "0>1:0F2" (the output of 0F2 sent from device 0 to 1), "1<0:0F2" (received),
/// "3AR0" (all-reduce), "3TAR0" (the all-reduce of tied weights; "3T1AR0" for the second tied weights), and with the
/// same numbers RS (reduce-scatter), AG (all-gather), A2A (all-to-all) and BC (broadcast). "3AR0/2" is the sum of the
/// third bucket of gradients, "2F5.AG" an all-gather of the op 2F5, "2F5.D2H" and "2B5.H2D" copies of its stash to and
/// from host memory, "2F5.late" the time that it waits.
std::string to_text(const Program&, InstructionId);
/// The name that the instruction has in the set of replicas of a device.
std::string to_text(const Program&, InstructionId, DeviceId);
/// Every stream as text, one line each.
std::string to_text(const Program&);

}  // namespace stagecraft
