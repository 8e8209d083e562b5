// The orders of `vocab-1`, `vocab-2` and `interlaced`.

#include "sim/schedule/vocabulary_order.hpp"

#include <algorithm>
#include <string_view>

#include "sim/cluster/phases.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/plan/vocabulary.hpp"

namespace stagecraft {
namespace {

/// Appends ops of a rank, each kind by ascending micro-batch, as long as there are any.
class VocabularyRow {
 public:
  VocabularyRow(int micro_batches, RankOps& ops) : micro_batches_(micro_batches), ops_(ops) {}

  void forwards(int count) {
    for (; count > 0 && forward_ < micro_batches_; --count) ops_.forward(0, forward_++);
  }
  void backward() {
    if (backward_ < micro_batches_) ops_.backward(0, backward_++);
  }
  /// Scores of a micro-batch, which run as one with the gradient of the one before.
  void merged_scores(int count) {
    for (; count > 0 && scores_ <= micro_batches_; --count, ++scores_) {
      if (scores_ > 0) ops_.add(OpKind::ScoresGradient, 0, scores_ - 1);
      if (scores_ > 0 && scores_ < micro_batches_) ops_.join_next();
      if (scores_ < micro_batches_) ops_.add(OpKind::Scores, 0, scores_);
    }
  }
  void scores_with_gradient(int count) {
    for (; count > 0 && scores_ < micro_batches_; --count, ++scores_) {
      ops_.add(OpKind::Scores, 0, scores_);
      ops_.add(OpKind::ScoresGradient, 0, scores_);
    }
  }

 private:
  int micro_batches_, forward_ = 0, backward_ = 0, scores_ = 0;
  RankOps& ops_;
};

/// Seconds of a forward, a backward, and of sending the output of the last stage to all ranks.
struct RankTimes {
  double forward = 0, backward = 0, send = 0;
};

RankTimes mean_times(const ScheduleInput& in) {
  RankTimes times;
  const int stages = in.plan.stage_count();
  for (StageId s{stages - 1}; s.valid(); --s.value) {
    times.forward += in.costs.at(s, 0).forward.value / stages;
    times.backward += in.costs.at(s, 0).backward.value / stages;
  }
  times.send = broadcast_time(in);
  return times;
}

/// Whether a rank runs the scores after each backward, else after each forward, and how many it runs before its first
/// backward, so that all ranks reach the scores of a micro-batch at nearly one time.
struct RankShape {
  bool after_backward = true;
  int early = 0;
};

/// From the last rank to the first, `offset` is when a rank may run its scores, counted from its forward. The released
/// code has no `send`; where B is a multiple of F it then pays the broadcast for every micro-batch.
std::vector<RankShape> rank_shapes(int ranks, const RankTimes& t) {
  std::vector<RankShape> shapes(1);
  double offset = 0;
  const double rounding = 1e-9 * (t.forward + t.backward);
  while (static_cast<int>(std::ssize(shapes)) < ranks) {
    if (offset - t.forward >= -t.backward + t.send - rounding) {
      offset -= t.forward;
      shapes.push_back({true, 0});
    } else {
      offset += t.backward - t.forward;
      shapes.push_back({false, 0});
      shapes.push_back({true, 0});
    }
  }
  shapes.resize(ranks);
  for (int i = 1; i < ranks; ++i) {
    const bool turns = !shapes[i - 1].after_backward && shapes[i].after_backward;
    shapes[i].early = shapes[i - 1].early + (turns ? 0 : 1);
  }
  std::reverse(shapes.begin(), shapes.end());
  return shapes;
}

}  // namespace

double broadcast_time(const ScheduleInput& in) {
  if (!in.cluster) return 0;
  std::vector<DeviceId> devices;
  for (const StageId s : vocabulary_stages(in.plan)) devices.push_back(in.plan.stage(s).leaders.front());
  const double samples = static_cast<double>(samples_at_once(in.plan.stages.back(), 0));
  const auto bytes = static_cast<std::uint64_t>(in.plan.vocabulary->input.value * samples + 0.5);
  return time_of(phases_of(CollectiveKind::Broadcast, collective_algorithms::ring, DeviceGroup{devices}, bytes),
                 LinkTable(*in.cluster))
      .value;
}

void vocabulary_order(const RankInput& in, int barriers, RankOps& ops) {
  const RankShape shape = rank_shapes(in.ranks, mean_times(in.in))[in.rank];
  VocabularyRow row(in.micro_batches, ops);
  row.forwards(in.ranks - in.rank);
  for (int i = 0; i < barriers; ++i) row.merged_scores(1), row.forwards(1);
  row.merged_scores(shape.early);
  for (int i = 0; i < in.micro_batches; ++i) {
    row.backward();
    if (shape.after_backward) row.merged_scores(1);
    row.forwards(1);
    if (!shape.after_backward) row.merged_scores(1);
  }
  row.merged_scores(in.micro_batches + 1);
}

void interlaced_order(const RankInput& in, RankOps& ops) {
  const int warm = std::min(in.ranks * 3 / 2 - in.rank, in.micro_batches);
  const int cool = std::min(in.ranks - in.rank, in.micro_batches);
  const int wait = std::max(0, warm - cool - (in.ranks - in.rank - 1) / 2);
  const bool forward_first = in.rank % 2 == in.ranks % 2;
  VocabularyRow row(in.micro_batches, ops);
  row.forwards(warm);
  row.scores_with_gradient(cool);
  for (int i = 0; i < wait; ++i) row.backward(), row.scores_with_gradient(1);
  for (int i = warm; i < in.micro_batches; ++i) {
    if (forward_first) row.forwards(1);
    row.backward();
    if (!forward_first) row.forwards(1);
    row.scores_with_gradient(1);
  }
  for (int i = 0; i < in.micro_batches; ++i) row.backward(), row.scores_with_gradient(1);
}

}  // namespace stagecraft
