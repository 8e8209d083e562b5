// Scores of a vocabulary that all ranks divide, put into the order of a schedule with two stages on each rank in a V:
// gradients move back by a micro-batch for each barrier, and each rank runs the scores when their input arrives.

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule/vocabulary_order.hpp"

namespace stagecraft {
namespace {

struct VocabularyOrder {
  std::string base = "1f1b";
  friend bool operator==(const VocabularyOrder&, const VocabularyOrder&) = default;
};

bool is_gradient(const Op& op) {
  return op.kind == OpKind::Backward || op.kind == OpKind::InputGradient || op.kind == OpKind::WeightGradient;
}

/// The rows of one iteration, by rank of the layout.
std::vector<std::vector<Op>> rows_of(const ScheduleDef& def, const ScheduleInput& in) {
  const Schedule order = def.whole ? def.whole(in) : by_rank(in, in.plan.micro_batches(StageId{0}), def.rank);
  std::vector<std::vector<Op>> rows;
  for (const std::vector<DeviceId>& devices : in.layout.devices) rows.push_back(order.row(devices.front()));
  return rows;
}

/// The row with all gradients `delay` micro-batches later, and the last ones in the same order at its end. The order
/// stays valid: a gradient runs where that of a later micro-batch did, after its own forward.
std::vector<Op> with_late_gradients(const std::vector<Op>& row, int micro_batches, int delay) {
  std::vector<Op> late, last;
  for (Op op : row) {
    if (!is_gradient(op)) {
      late.push_back(op);
      continue;
    }
    if (op.micro >= micro_batches - delay) last.push_back(op);
    op.micro -= delay;
    if (op.micro >= 0) late.push_back(op);
  }
  late.insert(late.end(), last.begin(), last.end());
  return late;
}

using Rows = std::vector<std::vector<Op>>;  ///< [rank of the layout]

class ScoresInserter {
 public:
  ScoresInserter(const ScheduleInput& in, const ScheduleDef& base, int barriers)
      : in_(in),
        barriers_(barriers),
        micro_batches_(in.plan.micro_batches(StageId{0})),
        last_(in.plan.stage_count() - 1),
        send_(broadcast_time(in)) {
    for (const std::vector<Op>& row : rows_of(base, in))
      rows_.push_back(with_late_gradients(row, micro_batches_, barriers));
  }

  /// Scores may run later than their input is there, where that suits the passes of most ranks. Of a few such delays
  /// the one with the shortest iteration is taken.
  Schedule run() {
    constexpr int kDelays = 16;
    double interval = 0;  // What a micro-batch takes on both stages of a rank.
    for (const StageId s : in_.layout.stages.front()) interval += in_.costs.at(s, 0).forward.value + backward_of(s);
    Rows best;
    double shortest = kNever;
    for (int n = 0; n < kDelays; ++n) {
      const double delay = n * interval / kDelays;
      starts_.clear();
      scores_after_ = send_ + delay;
      if (walk(rows_, false) == kNever) throw InternalError("an order with later gradients can never end");
      Rows rows;
      for (std::size_t r = 0; r < rows_.size(); ++r)
        rows.push_back(with_scores(rows_[r], starts_[r], in_.layout.stages[r].front()));
      const double makespan = walk(rows, true);
      if (makespan == kNever || (shortest != kNever && makespan >= shortest * kLess)) continue;
      shortest = makespan, best = std::move(rows);
    }
    if (best.empty()) throw InternalError("no delay of the scores gives an order that ends");
    Schedule result = empty_schedule(in_.plan);
    for (std::size_t r = 0; r < best.size(); ++r)
      for (const DeviceId device : in_.layout.devices[r]) result.ranks[result.rank(device)] = best[r];
    return result;
  }

 private:
  static constexpr double kNever = -1, kLess = 1 - 1e-9;

  /// Runs the rows, each op as soon as its input is there, and gives the last end; kNever where they can never end.
  /// Without scores, the gradients of the last stage leave them time.
  double walk(const Rows& rows, bool has_scores) {
    for (auto* const ends : {&forward_ends_, &gradient_ends_})
      ends->assign(in_.plan.stages.size(), std::vector<double>(micro_batches_, kNever));
    scored_.assign(micro_batches_, {});
    starts_.assign(rows.size(), {});
    std::vector<double> free(rows.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < rows.size(); ++r)
        for (double input = 0; starts_[r].size() < rows[r].size(); moved = true) {
          const std::size_t i = starts_[r].size();
          input = input_time(rows[r][i], has_scores);
          if (rows[r][i].fused && input != kNever) {
            const double other = input_time(rows[r][i + 1], has_scores);
            input = other == kNever ? kNever : std::max(input, other);
          }
          if (input == kNever) break;
          starts_[r].push_back(std::max(free[r], input));
          free[r] = starts_[r].back() + seconds_of(rows[r][i]);
          take_note(rows[r][i], free[r]);
        }
    }
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (starts_[r].size() < rows[r].size()) return kNever;
    return *std::max_element(free.begin(), free.end());
  }

  /// The ranks that have run the scores of a micro-batch, and their gradients, and the last end of each.
  struct Scored {
    int scores = 0, gradients = 0;
    double scores_end = 0, gradients_end = 0;
  };

  void take_note(const Op& op, double end) {
    if (op.kind == OpKind::Forward) forward_ends_[op.stage][op.micro] = end;
    if (passes_gradient(op.kind)) gradient_ends_[op.stage][op.micro] = end;
    Scored& scored = scored_[op.micro];
    if (op.kind == OpKind::Scores) ++scored.scores, scored.scores_end = std::max(scored.scores_end, end);
    if (op.kind == OpKind::ScoresGradient)
      ++scored.gradients, scored.gradients_end = std::max(scored.gradients_end, end);
  }

  double input_time(const Op& op, bool has_scores) const {
    const int ranks = static_cast<int>(rows_.size());
    const Scored& scored = scored_[op.micro];
    const double all_scored = scored.scores == ranks ? scored.scores_end : kNever;
    const double arrived = forward_ends_[last_][op.micro];
    if (op.kind == OpKind::Scores) return arrived == kNever ? kNever : arrived + send_;
    if (op.kind == OpKind::ScoresGradient) return all_scored;
    if (op.kind == OpKind::Forward)
      return op.stage.value == 0 ? 0 : forward_ends_[StageId{op.stage.value - 1}][op.micro];
    if (!passes_gradient(op.kind)) return 0;
    if (op.stage != last_) return gradient_ends_[StageId{op.stage.value + 1}][op.micro];
    if (has_scores) return barriers_ == 1 ? all_scored : scored.gradients == ranks ? scored.gradients_end : kNever;
    const double last_input = forward_ends_[last_][std::min(op.micro + barriers_, micro_batches_) - 1];
    return last_input == kNever ? kNever : last_input + scores_after_ + barriers_ * scores_time();
  }

  double backward_of(StageId s) const {
    const StageCost& cost = in_.costs.at(s, 0);
    return std::min(cost.backward, cost.input_gradient + cost.weight_gradient).value;
  }

  double seconds_of(const Op& op) const {
    const StageCost& cost = in_.costs.at(op.stage, 0);
    return op.kind == OpKind::Forward          ? cost.forward.value
           : op.kind == OpKind::Backward       ? cost.backward.value
           : op.kind == OpKind::InputGradient  ? cost.input_gradient.value
           : op.kind == OpKind::WeightGradient ? cost.weight_gradient.value
           : op.kind == OpKind::Scores         ? scores_time()  // With the gradient that runs as one with it.
                                               : 0;
  }

  double scores_time() const {
    const StageCost* part = in_.costs.at(in_.layout.stages.front().front(), 0).vocabulary.get();
    if (!part) return 0;
    const EachPass<TimeByClass>& p = part->passes;
    return (p.forward.total() + p.input_gradient.total() + p.weight_gradient.total()).value;
  }

  /// Scores go before the first op that starts when they may run. The gradient of one micro-batch runs as one with the
  /// scores of the next.
  std::vector<Op> with_scores(const std::vector<Op>& row, const std::vector<double>& starts, StageId stage) const {
    std::vector<Op> ops;
    int next = 0;
    const auto add_scores = [&] {
      if (next > 0) ops.push_back({OpKind::ScoresGradient, true, stage, next - 1});
      ops.push_back({OpKind::Scores, false, stage, next++});
      if (next == micro_batches_ && barriers_ == 2) ops.push_back({OpKind::ScoresGradient, false, stage, next - 1});
    };
    for (std::size_t i = 0; i < row.size(); ++i) {
      while (next < micro_batches_ && forward_ends_[last_][next] + scores_after_ <= starts[i] * (1 + 1e-9))
        add_scores();
      ops.push_back(row[i]);
    }
    while (next < micro_batches_) add_scores();
    if (barriers_ == 1) ops.push_back({OpKind::ScoresGradient, false, stage, next - 1});
    return ops;
  }

  const ScheduleInput& in_;
  int barriers_, micro_batches_;
  StageId last_;
  double send_;
  double scores_after_ = 0;                  ///< Seconds from the end of the last forward of a micro-batch.
  Rows rows_;                                ///< Without scores.
  std::vector<std::vector<double>> starts_;  ///< [rank][op]
  IdVector<StageId, std::vector<double>> forward_ends_, gradient_ends_;  ///< [stage][micro-batch]
  std::vector<Scored> scored_;                                           ///< [micro-batch]
};

}  // namespace

namespace schedules {
extern const ScheduleDef v_1f1b, v_half, v_min, zb_v;
}

namespace {

/// The orders that scores go into, but for 1F1B, which has its own rule.
const std::vector<const ScheduleDef*>& orders_in_v() {
  static const std::vector<const ScheduleDef*> orders{&schedules::v_1f1b, &schedules::v_half, &schedules::v_min,
                                                      &schedules::zb_v};
  return orders;
}

const ScheduleDef& order_in_v(const std::string& name) {
  return **std::find_if(orders_in_v().begin(), orders_in_v().end(),
                        [&](const ScheduleDef* def) { return def->name == name; });
}

}  // namespace

const config::MapSpec vocabulary_order_fields{
    .title = "Which order the scores go into.",
    .fields = {config::choice("order", std::vector<std::string>{"1f1b", "1f1b-v", "v-half", "v-min", "zb-v"})
                   .fallback("1f1b")
                   .doc("The schedule without scores. All but 1f1b have two stages on each rank, in a V.")}};

void read_vocabulary_order(const config::Value& map, ScheduleOptions& options) {
  options.keep(VocabularyOrder{map.at("order").text});
}

Schedule order_with_vocabulary(const ScheduleInput& in, VocabularyPasses passes) {
  const int barriers = passes == VocabularyPasses::OneBarrier ? 1 : 2;
  const std::string base = in.options.as<VocabularyOrder>().base;
  Schedule order = base == "1f1b"
                       ? by_rank(in, in.plan.micro_batches(StageId{0}) * in.iterations,
                                 [&](const RankInput& rank, RankOps& ops) { vocabulary_order(rank, barriers, ops); })
                       : ScoresInserter(in, order_in_v(base), barriers).run();
  order.vocabulary = passes;
  return order;
}

}  // namespace stagecraft
