#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "sim/cluster/phases.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/program/edge_arrays.hpp"
#include "sim/program/lower.hpp"
#include "sim/program/replica_pairs.hpp"
#include "sim/program/weights_cost.hpp"
#include "sim/schedule/vocabulary_progress.hpp"
#include "sim/weights/reads.hpp"

namespace stagecraft {

/// A piece of data that one op makes and another, on another device, needs.
struct Message {
  StageId stage;  ///< The stage that makes it.
  int micro = 0;  ///< Micro-batch of `stage`.
  bool gradient = false;
  DeviceId from, to;
  RowRange rows;    ///< Samples of the micro-batch that makes it.
  int channel = 0;  ///< Index of the pair of replicas it goes between.
  int edge = 0;
  std::size_t consumer = 0;  ///< Piece of the op that needs it.
};

/// Appends instructions to a Program and keeps everything that does not depend on how communication is laid out:
/// routes, streams, versions, buffers, resident memory.
class ProgramWriter {
 public:
  ProgramWriter(const Schedule&, const Plan&, const StageCosts&, const WeightsRule&, const LoweringOptions&);

  /// Appends the collectives inside the ops [first, end) of devices with equal lists, which need each other. They wait
  /// for the last computation of each device and for its `inputs`. compute() of the same ops comes next on each.
  void exchange(std::span<const DeviceId>, std::size_t first, std::size_t end,
                const IdVector<DeviceId, std::vector<InstructionId>>& inputs);
  /// Appends ops [first, end) of the device's list, which run as one, and returns the last one. The first one waits for
  /// the device's last computation and for `inputs`. A prediction precedes the op that uses it; with overlap, it does
  /// not wait for `inputs`.
  InstructionId compute(DeviceId, std::size_t first, std::size_t end, std::span<const InstructionId> inputs);
  /// Appends the two ends of a message. Each also waits for its stream and for the order of sends.
  InstructionId send(const Message&, InstructionId producer);
  InstructionId receive(const Message&, InstructionId send, InstructionId after);
  /// The collectives of a reduction for the update of this number, unless they are written. With overlap they wait for
  /// the last gradients, without it for the last computations.
  void reduce(ReductionId, int number);
  /// Writes all reductions that the stage's update waits for and that are not written yet.
  void reduce_before_update(StageId, int number);
  /// Adds to `inputs` the newest reductions that the update of a stage on a device waits for.
  void add_reduced(StageId, DeviceId, std::vector<InstructionId>& inputs) const;
  /// Ends the buffer of a received message after its consumer was written.
  void consume(InstructionId receive, InstructionId consumer);

  /// Every message that `op` on `device` sends, in the order of the plan's edges.
  template <class Visit>
  void for_each_message(DeviceId device, const Op& op, Visit&& visit) const;

  InstructionId last_compute(DeviceId d) const { return last_[compute_stream(d)]; }
  const PieceIndex& pieces() const { return pieces_; }
  const Plan& plan() const { return plan_; }
  const UpdateBarriers& barriers() const { return barriers_; }
  const LoweringOptions& options() const { return options_; }
  Program finish() { return std::move(program_); }

 private:
  /// Streams and routes between two replicas of neighboring stages; [0] for activations, [1] for gradients.
  struct Channel {
    std::int32_t route[2] = {-1, -1};
    StreamId send[2], receive[2];
    std::int32_t shape[2] = {-1, -1};  ///< The newest shape of a message; older ones follow in next_shape_.
  };

  void count(const Schedule&);
  Seconds duration_of(const Op&, int replica) const;
  Load load_of(const Message&) const;
  void open_channels();
  void keep_resident(bool trains);
  std::int32_t route(DeviceId from, DeviceId to);
  std::int32_t shape_of(const Message&);
  /// Every device has a stream for its computations; these come first.
  static StreamId compute_stream(DeviceId d) { return StreamId{d.value}; }
  StreamId stream(DeviceId device, StreamKind kind, DeviceId peer);
  InstructionId begin(const Instruction&, Bytes traffic = {});
  void wait(InstructionId);
  void follow(StreamId);
  void keep_activations(InstructionId, const Op&, int replica);
  void keep_gradient(InstructionId last, DeviceId, const Op&);

  /// One collective of a reduction.
  struct SumPart {
    std::int32_t shape = -1;
    int group = 0;
    int bucket = -1;
    Seconds cost{};
  };
  struct ReductionState {
    int number = -1;                         ///< The newest update that it was written for.
    int tie = -1;                            ///< Its number among the reductions of tied parameters; -1: it is none.
    std::vector<SumPart> parts;              ///< One after another; empty until the first use.
    std::map<DeviceId, InstructionId> sums;  ///< The part of each device in the newest collectives.
  };
  /// The collectives that an op of a stage runs at one time, each with the devices that have its instructions.
  struct PlacedCollective {
    Collective what;
    std::vector<std::pair<std::vector<DeviceId>, std::int32_t>> sets;  ///< Leaders, and the shape.
    std::map<DeviceId, int> set_led_by;                                ///< First leader of a set: its index.
  };
  /// What a collective inside an op waits for on each device.
  struct Chain {
    std::vector<InstructionId> before, newest;
  };
  /// What the ranks of one replica exchange for a vocabulary that they divide; by VocabularyExchange.
  struct Meetings {
    std::array<std::map<int, std::int32_t>, kVocabularyExchanges> shapes;  ///< By class of load.
    std::array<IdVector<StageId, StreamId>, kVocabularyExchanges> streams;
  };
  void open_meetings();
  CollectiveKind kind_of(VocabularyExchange) const;
  Bytes bytes_of_sample(VocabularyExchange) const;
  std::int32_t shape_of(VocabularyExchange, int micro, int replica);
  const std::vector<StageId>& members_of(VocabularyExchange) const;
  void wait_for_meeting(DeviceId, const Op&);
  void meet(DeviceId, const Op&, InstructionId last);
  void bring_embedding(DeviceId, const Op&);
  void bring_embedding_gradient(DeviceId, const Op&, InstructionId last);
  /// Each member waits for what the function adds for its stage.
  InstructionId write_exchange(VocabularyExchange, const Op&, int replica,
                               const std::function<void(StageId)>& add_waits);
  const StageCollectives* collectives_on(const Op&, DeviceId) const;
  const Collectives& collectives_of(const Op&, DeviceId) const;
  bool hides_collectives(const Op&, DeviceId) const;
  bool is_pair(std::span<const Op>) const;
  double pair_slowdown(DeviceId, std::span<const Op>) const;
  const PlacedCollective& placed(StageId, const Collective&);
  void write_collectives(std::span<const DeviceId>, const Op&, bool in_pair, bool hidden);
  void write_members(std::span<const DeviceId>, const Op&, const Collective&, std::int32_t shape, double share,
                     bool hidden);
  void find_leaders();
  bool plays_groups(const Reduction&) const;
  std::vector<SumPart> open_parts(const Reduction&);
  std::vector<std::int32_t> open_group_shapes(const Reduction&);
  std::int32_t open_sum_shape(const Reduction&, const Collective&, Bytes);
  std::vector<SumPart> open_bucket_parts(const Reduction&);
  double share_before(const Reduction&, int bucket, const std::vector<DeviceId>& group) const;
  bool runs_on(StageId, DeviceId) const;
  InstructionId gradient_on(StageId, DeviceId) const;
  InstructionId newest_sum(ReductionId, DeviceId) const;
  void wait_for_gradients(const Reduction&, DeviceId, bool with_exchanges);
  void open_collective_streams(const std::vector<DeviceId>& group);
  std::int32_t open_shape(const Reduction&, const std::vector<DeviceId>& group, Bytes);
  InstructionId begin_member(DeviceId, const Reduction&, Seconds cost, int number);
  const StageCost& cost(StageId s, int replica) const { return costs_.at(s, replica); }
  /// With the load of the micro-batch of the op.
  const StageCost& cost(const Op& op, int replica) const {
    const bool is_update = op.kind == OpKind::Update;
    return costs_.at(op.stage, replica, is_update ? LoadTable::kMean : plan_.loads.at(op.micro, replica));
  }
  Bytes traffic_of(const Op&, int replica) const;
  Instruction instruction_of(DeviceId, const Op&, int replica, const WeightRead&) const;
  void predict(const Instruction& user, int replica, int horizon, std::span<const InstructionId> inputs);

  const Schedule& schedule_;
  const Plan& plan_;
  const StageCosts& costs_;
  WeightsRule weights_;
  LoweringOptions options_;
  WeightReads reads_;
  PieceIndex pieces_;
  EdgeLists edges_;
  UpdateBarriers barriers_;
  ReplicaPairs pairs_;
  std::vector<Channel> channels_;         ///< [pair]
  std::vector<std::int32_t> next_shape_;  ///< Another shape of the same channel and role; -1: none.
  IdVector<StreamId, InstructionId> last_;
  IdVector<DeviceId, InstructionId> last_send_;
  std::vector<InstructionId> forward_, recomputed_;  ///< [piece]; `recomputed_` is empty where nothing recomputes.
  EdgeArrays edge_arrays_;
  IdVector<DeviceId, std::vector<StageId>> stages_on_;
  IdVector<StageId, std::vector<InstructionId>> gradients_;  ///< [stage][replica]: what made the newest gradient.
  IdVector<ReductionId, ReductionState> reductions_;
  IdVector<DeviceId, StreamId> collective_stream_;
  bool has_collectives_ = false;  ///< Some ops have collectives of their own.
  IdVector<StageId, std::vector<PlacedCollective>> placed_;
  IdVector<StageId, Collectives> update_collectives_;
  IdVector<DeviceId, Chain> chain_;
  IdVector<DeviceId, std::vector<InstructionId>> ready_;       ///< What the next computation waits for.
  IdVector<DeviceId, std::vector<InstructionId>> overlapped_;  ///< Collectives next to the newest op.
  IdVector<DeviceId, std::vector<InstructionId>> deferred_;    ///< Collectives that run next to the op after it.
  IdVector<DeviceId, StreamId> group_stream_;
  VocabularyProgress vocabulary_;
  std::vector<Meetings> meetings_;  ///< [replica]; empty where the first and the last stage have the vocabulary.
  std::array<std::vector<InstructionId>, 3> met_;   ///< [meeting_of()][VocabularyProgress::index()]: first member.
  std::array<std::vector<InstructionId>, 3> came_;  ///< [meeting_of()][piece]: what each rank has run for it.
  std::vector<StageId> from_first_;              ///< The stages with a part of the vocabulary, the first stage first.
  IdVector<DeviceId, InstructionId> embedding_;  ///< The newest sum of embeddings, on the rank of the first stage.
  IdVector<DeviceId, InstructionId> embedding_gradient_;  ///< The newest gradient that came for a part of the words.
  IdVector<DeviceId, InstructionId> new_words_;           ///< The newest update of a part of the words.
  bool shares_memory_ = false;
  std::vector<OpTimes> op_times_;  ///< [cost]: the times of its ops as instructions.
  Program program_;
};

template <class Visit>
void ProgramWriter::for_each_message(DeviceId device, const Op& op, Visit&& visit) const {
  const bool gradient = op.kind != OpKind::Forward;
  if (gradient && !passes_gradient(op.kind)) return;
  const Stage& stage = plan_.stage(op.stage);
  const int replica = stage.leaders.size() == 1 ? 0 : replica_on(stage, device);
  if (plan_.loads.is_empty_at(op.micro, replica)) return;
  for (const int e : gradient ? edges_.in[op.stage] : edges_.out[op.stage]) {
    const StageEdge& edge = plan_.edges[e];
    const StageId other_id = gradient ? edge.from : edge.to;
    const Stage& other = plan_.stage(other_id);
    for_each_shared_range(stage, op.micro, replica, other, [&](int m, int r, SampleRange shared) {
      const DeviceId to = other.leaders[r];
      if (to == device) return;
      const int channel = gradient ? pairs_.index(e, r, replica) : pairs_.index(e, replica, r);
      const std::int64_t first = shared.low - std::int64_t{op.micro} * stage.micro_batch_size;
      visit(Message{op.stage,
                    op.micro,
                    gradient,
                    device,
                    to,
                    {first, shared.high - shared.low},
                    channel,
                    e,
                    pieces_.index(other_id, m, r)});
    });
  }
}

}  // namespace stagecraft
