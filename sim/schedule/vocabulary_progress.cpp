// Counts the passes of a vocabulary that all ranks divide, for the order of a schedule and for its program.

#include "sim/schedule/vocabulary_progress.hpp"

#include <algorithm>

#include "sim/plan/vocabulary.hpp"

namespace stagecraft {

VocabularyProgress::VocabularyProgress(const Schedule& schedule, const Plan& plan, int iterations)
    : passes_(schedule.vocabulary) {
  if (!is_used()) return;
  last_ = StageId{plan.stage_count() - 1};
  stages_ = vocabulary_stages(plan);
  ranks_ = static_cast<int>(stages_.size());
  for (const Stage& stage : plan.stages) {
    const auto on_rank = [&](StageId s) { return plan.stage(s).leaders.front() == stage.leaders.front(); };
    members_.push_back(static_cast<int>(std::find_if(stages_.begin(), stages_.end(), on_rank) - stages_.begin()));
  }
  replicas_ = plan.stage(last_).replicas();
  for (auto& counts : counts_) counts.assign(index(plan.micro_batches(last_) * iterations, 0), 0);
  embeds_ = plan.vocabulary && plan.vocabulary->embedding.value > 0;
  micro_batches_ = plan.micro_batches(last_);
  updates_.assign(std::int64_t{iterations} * replicas_, 0);
  gradients_.assign(iterations, 0);
}

std::optional<OpKind> VocabularyProgress::need(const Op& op) const {
  if (!is_used()) return {};
  if (op.kind == OpKind::Scores) return OpKind::Forward;
  if (op.kind == OpKind::ScoresGradient) return OpKind::Scores;
  if (op.stage != last_ || !passes_gradient(op.kind)) return {};
  return passes_ == VocabularyPasses::OneBarrier ? OpKind::Scores : OpKind::ScoresGradient;
}

bool VocabularyProgress::allows(const Op& op, int replica) const {
  if (needs_embedding(op)) {
    const int iteration = op.micro / micro_batches_;
    return iteration == 0 || updates_[(iteration - 1) * replicas_ + replica] == ranks_;
  }
  // Sums over replicas are written with the first of their updates.
  if (updates_words(op)) return gradients_[op.micro] == micro_batches_ * replicas_;
  const std::optional<OpKind> needed = need(op);
  return !needed || is_complete(*needed, op.micro, replica);
}

bool VocabularyProgress::add_embedding(const Op& op, int replica) {
  if (updates_words(op)) return ++updates_[op.micro * replicas_ + replica] == ranks_;
  return gives_embedding_gradient(op) && ++gradients_[op.micro / micro_batches_] == micro_batches_ * replicas_;
}

bool VocabularyProgress::has_scores(const Op& op) const {
  return op.kind == OpKind::Forward ? op.stage == last_
                                    : op.kind == OpKind::Scores || op.kind == OpKind::ScoresGradient;
}

bool VocabularyProgress::add(const Op& op, int replica) {
  if (!is_used()) return false;
  if (!has_scores(op)) return add_embedding(op, replica);
  ++counts_[meeting_of(op.kind)][index(op.micro, replica)];
  return completes_scores(op, replica);
}

}  // namespace stagecraft
