#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "backends/real/collectives.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/gradient_buckets.hpp"
#include "backends/real/host_copies.hpp"
#include "backends/real/program_executor.hpp"
#include "backends/real/records.hpp"
#include "backends/real/stage_executor.hpp"
#include "backends/real/thread_communicator.hpp"
#include "backends/real/transfer_tensors.hpp"
#include "backends/real/vocabulary_rank.hpp"

namespace stagecraft::real {

/// Everything that a real run holds: stages, memories, messages. Instructions find their stage here.
class Session : public Actions, public RemoteBuffers, public CollectiveArrays {
 public:
  /// Connects the members of a group of these devices that are here with those that are not.
  using RemoteMaker = std::function<std::unique_ptr<RemoteMembers>(int group, const std::vector<DeviceId>&)>;

  /// Makes the communicator of a group of which at least one device is here.
  using CommunicatorMaker = std::function<std::unique_ptr<GroupCommunicator>(const std::vector<DeviceId>&)>;

  /// `queued`: kernels may return before they are done, so nothing is looked at before the end of the run, and memory
  /// is not this machine's. `communicators` is needed where devices have no threads that could wait for each other;
  /// otherwise `remote` where a group is not here as a whole. `host_kernels` copy stashes to the memory of a host,
  /// where that is not the memory of all kernels.
  Session(const Program&, const KernelFactory&, const std::function<bool(DeviceId)>& here, bool queued = false,
          const RemoteMaker& remote = {}, const CommunicatorMaker& communicators = {},
          const KernelFactory& host_kernels = {});

  void compute(InstructionId) override;
  void when_part_done(PartDone call) override { part_done_ = std::move(call); }
  int waiting() const override { return waits_.waiting; }
  void interrupt() override;
  /// Whether devices meet inside of instructions, so that each needs a thread.
  bool has_groups() const { return !groups_.empty(); }
  bool divides_vocabulary() const { return !w_.vocabulary.empty(); }
  /// The devices of all groups, wherever they are: the same list in all processes.
  std::vector<std::vector<DeviceId>> groups() const;
  void carry(int transfer) override;
  void carry(int transfer, const Copier& copy) { transfers_->carry(transfer, copy); }
  void give(int transfer, const Piece& piece) { transfers_->give(transfer, piece); }
  void take(int transfer, const Piece& piece) { transfers_->take(transfer, piece); }
  void collective(int index) override;

  std::size_t bytes(int transfer) const override { return transfers_->bytes(transfer); }
  void pack(int transfer, void* into) override { transfers_->pack(transfer, into); }
  void unpack(int transfer, const void* from) override { transfers_->unpack(transfer, from); }
  std::size_t share_bytes(InstructionId member) override;
  void pack_share(InstructionId member, void* into) override;
  void finish(int index, std::span<const void* const> shares) override;
  std::size_t number_bytes(int index) const override;
  void add_up(int index, std::span<const void* const> parts, std::size_t bytes, void* sum) override;
  void finish_sum(int index, const void* sum) override;

  /// Collectives work in place on the gradients of their members, or on what ranks exchange for a vocabulary.
  std::int64_t numbers(const CollectiveCall&) override;
  MemberArrays arrays(InstructionId member) override;
  /// Divided gradients are summed in every backward, so nothing is left for a collective but that all members wait.
  /// Forwards start as soon as they may.
  bool only_waits(const CollectiveCall& c) const {
    const bool is_summed = w_.stages[p_.at(c.first).stage].shards(StateSharding::Gradients);
    return (is_summed && c.purpose != Purpose::Vocabulary) || c.purpose == Purpose::LateForward;
  }
  Kernels* kernels_of(InstructionId member) override { return kernels_[p_.at(member).device].get(); }

  /// Resets a queued run to the state before its first instruction; staged input data is kept. `again`: another rewind
  /// will follow.
  void rewind(bool again);
  /// Enclose an iteration, so that all iterations but the first find their data and memory at the same addresses.
  void begin_iteration(std::span<const InstructionId>);
  void end_iteration(int iteration);
  /// Between two iterations: the arrays that stay. Two iterations of equal instructions do equal work in equal memory
  /// if these are equal and memory is laid out equally. Nothing where an iteration leaves more than these, and where
  /// devices meet inside of instructions.
  std::optional<std::vector<std::uint64_t>> lasting_arrays() const;
  /// Takes note of an instruction that does the same work as an iteration ago, without doing it.
  void repeat(InstructionId);

  void require_finite() const;          ///< Infeasible "diverged" when a loss is not a finite number.
  Records records() const;              ///< Records of this process.
  Learnt learnt(const Records&) const;  ///< Takes the merged records of all processes.
  StageExecutor& stage_on(StageId, DeviceId);
  Kernels& kernels(DeviceId d) { return *kernels_[d]; }

 private:
  void prepare_data();
  void copy_stash(int index);
  // In session_vocabulary.cpp: collectives of a vocabulary that all ranks of a pipeline divide.
  void open_vocabulary();
  void open_vocabulary_rank(StageId, int replica, const MemberGroups&, const std::vector<WeightSection>&);
  void start_words(StageId, int replica);
  bool is_wide(const CollectiveCall&) const;
  VocabularyRank& vocabulary_on(InstructionId member) { return *vocabulary_[p_.at(member).device]; }
  std::int64_t numbers_exchanged(const CollectiveCall&) const;
  MemberArrays exchanged_arrays(InstructionId member);
  void meet(int index);
  void finish_exchange(int index, std::span<const void* const> shares);
  void add_up_records(int index, std::span<const void* const> parts, std::size_t bytes, void* sum);
  void complete_exchange(const CollectiveCall&);
  void compute_in_buckets(InstructionId, StageExecutor&);
  void compile_nets();
  GroupMember group_of(StageId, const std::vector<DeviceId>& devices, DeviceId member);
  MemberGroups groups_of(StageId, int replica);
  std::vector<WeightSection> sections_of(StageId, int replica);
  const StageNet& net(StageId s, int replica) const { return nets_[s][replica % nets_[s].size()]; }
  const StageNet& net_on(const Instruction& i) const { return net(i.stage, w_.stages[i.stage].replica_on(i.device)); }
  std::unique_ptr<WeightStore> new_store(StageId, int replica) const;
  bool keeps_part(const StageWorkload&) const;
  bool records_weights(StageId, int replica) const;
  using NumbersOf = std::function<const std::vector<double>*(const ReplicaRecord&)>;
  std::optional<std::vector<double>> whole_weights(StageId, const Records&, const NumbersOf&) const;
  std::vector<Evaluation> evaluations(const Records&) const;

  const Program& p_;
  const Workload& w_;
  KernelFactory factory_;
  std::size_t width_;
  GradientBuckets buckets_;
  HostCopies host_copies_;
  PartDone part_done_;
  std::unique_ptr<Dataset> data_;
  IdVector<StageId, StageNet> whole_nets_;         ///< Undivided stages.
  IdVector<StageId, std::vector<StageNet>> nets_;  ///< [stage][replica, until the places in both meshes repeat]
  std::function<bool(DeviceId)> here_;
  RemoteMaker remote_;
  CommunicatorMaker communicators_;
  GroupWaits waits_;
  /// Null where no member is here. All processes meet the groups in one order, which numbers them.
  std::map<std::pair<StageId, std::vector<DeviceId>>, std::unique_ptr<GroupCommunicator>> groups_;
  IdVector<DeviceId, std::unique_ptr<Kernels>> kernels_;  ///< Null where nothing runs here.
  IdVector<DeviceId, std::unique_ptr<DeviceMemory>> memories_;
  IdVector<DeviceId, std::unique_ptr<Kernels>> host_kernels_;  ///< Null where no stash is copied to the host.
  IdVector<DeviceId, std::unique_ptr<DeviceMemory>> hosts_;
  std::unique_ptr<TransferTensors> transfers_;
  IdVector<StageId, std::vector<std::unique_ptr<StageExecutor>>> stages_;  ///< [stage][replica]
  VocabularyPart first_part_;                                       ///< Any stage's: sizes are the same for all ranks.
  IdVector<DeviceId, std::unique_ptr<VocabularyRank>> vocabulary_;  ///< Null where no vocabulary is divided.
  IdVector<StageId, std::vector<double>> starts_;  ///< Initial weights of undivided stages, until no store or rewind()
                                                   ///< needs them.
  IdVector<InstructionId, std::int32_t> versions_;
};

}  // namespace stagecraft::real
