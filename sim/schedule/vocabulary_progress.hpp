#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The ops after which ranks meet for scores, as an index: forwards of the last stage, scores, gradients of scores.
constexpr std::size_t meeting_of(OpKind kind) { return kind == OpKind::Forward ? 0 : kind == OpKind::Scores ? 1 : 2; }

/// Where the ranks of a pipeline meet for the scores of a micro-batch, which they divide. Each replica is by itself:
///
///   the forward of the last stage -> scores on all ranks -> their gradients on all ranks
///
/// and the backward of the last stage waits for the last of these that makes its gradient. The embedding, which they
/// divide too, comes before the forwards of the first stage with words of all ranks, so after the updates of them all;
/// its gradient comes after the backwards of that stage, and before these updates.
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
  /// Whether they have, and where ranks exchange embeddings whether these can be there.
  bool allows(const Op&, int replica) const;
  bool is_complete(OpKind kind, int micro, int replica) const {
    return counts_[meeting_of(kind)][index(micro, replica)] == (kind == OpKind::Forward ? 1 : ranks_);
  }
  /// Counts an op that has run; true where it is the one that others wait for, of any replica.
  bool add(const Op&, int replica);
  /// Whether it was the one after which the ranks of its replica exchange inputs or sums of scores.
  bool completes_scores(const Op& op, int replica) const {
    return has_scores(op) && is_complete(op.kind, op.micro, replica);
  }

  /// Whether the first stage gets the sum of what all ranks look up before this op, and whether it gives them the
  /// gradient of that after it.
  bool needs_embedding(const Op& op) const { return embeds_ && op.stage == kFirst && op.kind == OpKind::Forward; }
  bool gives_embedding_gradient(const Op& op) const {
    return embeds_ && op.stage == kFirst && passes_gradient(op.kind);
  }
  /// Whether the op updates a part of the words.
  bool updates_words(const Op& op) const {
    return embeds_ && op.kind == OpKind::Update && stages_[members_[op.stage]] == op.stage;
  }

  /// The number of a micro-batch of a replica.
  std::size_t index(int micro, int replica) const { return static_cast<std::size_t>(micro) * replicas_ + replica; }
  std::size_t size() const { return counts_.front().size(); }

 private:
  static constexpr StageId kFirst{0};

  bool has_scores(const Op&) const;
  bool add_embedding(const Op&, int replica);

  VocabularyPasses passes_;
  StageId last_;
  std::vector<StageId> stages_;
  IdVector<StageId, int> members_;
  int ranks_ = 0, replicas_ = 0;
  std::array<std::vector<std::int32_t>, 3> counts_;  ///< [meeting_of()][index()]: ranks that have run the op.
  bool embeds_ = false;                              ///< Whether ranks exchange embeddings.
  int micro_batches_ = 0;                            ///< In an iteration.
  std::vector<std::int32_t> updates_;                ///< [iteration * replicas + replica]: ranks with new words.
  std::vector<std::int32_t> gradients_;              ///< [iteration]: gradients that have left the first stage.
};

}  // namespace stagecraft
