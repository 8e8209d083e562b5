#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The ops after which ranks meet, as an index: forwards of the last stage, scores, gradients of scores.
constexpr std::size_t meeting_of(OpKind kind) { return kind == OpKind::Forward ? 0 : kind == OpKind::Scores ? 1 : 2; }

/// Where the ranks of a pipeline meet for the scores of a micro-batch, which they divide. Each replica is by itself:
///
///   the forward of the last stage -> scores on all ranks -> their gradients on all ranks
///
/// and the backward of the last stage waits for the last of these that makes its gradient.
class VocabularyProgress {
 public:
  VocabularyProgress(const Schedule&, const Plan&, int iterations);

  bool is_used() const { return passes_ != VocabularyPasses::None; }
  /// The stages that meet: see vocabulary_stages().
  const std::vector<StageId>& stages() const { return stages_; }
  StageId last() const { return last_; }
  /// The index in stages() of the one on the rank of a stage.
  int member(StageId s) const { return members_[s]; }
  /// What all ranks, or the last, have to have run for a micro-batch before this op; nothing where it waits for none.
  std::optional<OpKind> need(const Op&) const;
  /// Whether they have.
  bool allows(const Op& op, int replica) const {
    const std::optional<OpKind> needed = need(op);
    return !needed || is_complete(*needed, op.micro, replica);
  }
  bool is_complete(OpKind kind, int micro, int replica) const {
    return counts_[meeting_of(kind)][index(micro, replica)] == (kind == OpKind::Forward ? 1 : ranks_);
  }
  /// Counts an op that has run; true where it is the one that others wait for.
  bool add(const Op&, int replica);

  /// The number of a micro-batch of a replica.
  std::size_t index(int micro, int replica) const { return static_cast<std::size_t>(micro) * replicas_ + replica; }
  std::size_t size() const { return counts_.front().size(); }

 private:
  VocabularyPasses passes_;
  StageId last_;
  std::vector<StageId> stages_;
  IdVector<StageId, int> members_;
  int ranks_ = 0, replicas_ = 0;
  std::array<std::vector<std::int32_t>, 3> counts_;  ///< [meeting_of()][index()]: ranks that have run the op.
};

}  // namespace stagecraft
