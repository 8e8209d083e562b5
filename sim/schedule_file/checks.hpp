#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/actions.hpp"
#include "sim/schedule_file/csv.hpp"
#include "sim/schedule_file/torch.hpp"

// The levels of checking that go beyond the order of computations (sim/schedule/validate.hpp has levels 2 to 4). Each
// expects a table that has passed the levels before it.

namespace stagecraft {

/// Which messages of a rank wait for one another.
enum class CommStreams : std::uint8_t {
  Single,    ///< All of them: batch_isend_irecv on one process group.
  Pair,      ///< Messages with the same peer: a communicator for each pair of ranks.
  Direction  ///< Messages with the same peer and of the same kind, activations or gradients.
};

/// Level 5: every output that crosses ranks has one SEND after the op that makes it and one RECV before the op that
/// uses it; nothing else is sent; and messages from one rank to another are received in the order they are sent, in
/// each channel that the streams have. O(actions).
std::vector<ScheduleProblem> check_comms(const ActionTable&, const Plan&, CommStreams);

struct RendezvousOptions {
  CommStreams streams = CommStreams::Single;
  bool grouped = false;    ///< Adjacent messages of a stream are one batch, as in ncclGroup.
  double message = 1;      ///< Bytes of every message.
  double eager_below = 0;  ///< Smaller messages leave without their receiver.
};

/// Level 6: computations and streams of messages run next to each other, each in order; a batch starts when everything
/// it sends is computed, and ends when the other side of each of its messages has started. Reports the shortest cycle
/// of waits. O(actions).
std::vector<ScheduleProblem> check_rendezvous(const ActionTable&, const Plan&, const RendezvousOptions&);

/// What takes memory on a rank, in any unit. There is no time here: memory is taken and given back op by op.
struct StashModel {
  double each_stash = 1;                ///< What one micro-batch keeps of a stage from F to B.
  std::vector<double> stash = {};       ///< What it keeps [stage], where stages differ.
  double freed_at_input = 0;            ///< Share of it that I gives back; W gives the rest.
  double kept_for_recompute = 0;        ///< Share that stays from F to R, where the order recomputes.
  double message = 0;                   ///< A message, from RECV to the op that uses it and from its op to SEND.
  double resident = 0;                  ///< Weights, gradients and optimizer of a rank.
  std::optional<double> capacity = {};  ///< Memory of a rank.
};

/// The highest point of one rank.
struct StashPeak {
  double size = 0;
  int index = -1;  ///< The action that runs then.
};

/// The peak of each rank. O(actions).
std::vector<StashPeak> stash_peaks(const ActionTable&, const Plan&, const StashModel&);
/// Level 7: the first action of each rank that does not fit in the capacity. O(actions).
std::vector<ScheduleProblem> check_stash(const ActionTable&, const Plan&, const StashModel&);

/// Level 8, for a stage that shards its weights or reduces its gradients in the file: weights are gathered before each
/// use, never twice, and given back; gradients are reduced once, after the last B or W. PyTorch 2.11 scales gradients
/// in REDUCE_GRAD only, so with it every stage has to have one. O(actions).
std::vector<ScheduleProblem> check_sharding(const ActionTable&, const Plan&, TorchVersion);

/// Level 10: what runs but may not be what was meant. Warnings, never a reason to refuse:
///   split-backward   I and W apart cannot be run on modules of torch.compile
///   idle-weight      no W runs where its rank would wait, at equal times of all ops, so the split gains nothing
///   overlap          OVERLAP_F_B without a forward or without a backward: PyTorch runs its ops one after the other
///   timestep         an op stands in a column that does not come after that of its input: the timestep-locked runtime
///                    (PipelineScheduleMulti) needs idle cells between; compute-only files alone
///   exposed          transfers that nothing hides: the op that uses one starts at the moment it is made
///   unsharded        a file with messages and without UNSHARD cannot run stages under FSDP
/// O(ops).
std::vector<ScheduleProblem> lint(const CsvFile&, const Plan&);

}  // namespace stagecraft
