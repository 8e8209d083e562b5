// The automatic zero-bubble schedule of one chunk on each rank, for `zb-1p` and `zb-2p`.

#include "sim/schedule/zero_bubble.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/stop_point.hpp"
#include "sim/schedule/greedy_rows.hpp"

namespace stagecraft {
namespace {

enum { F, I };  // The legs.
constexpr Leg kZeroBubbleLegs[] = {{OpKind::Forward, 0, true}, {OpKind::InputGradient, 0, false}};

struct TieBreaks {
  bool bubble_before_first_gradient, gradient_first, fill_any_gap;
};

/// The schedule that one way of breaking ties gives.
class ZeroBubbleTrial {
 public:
  ZeroBubbleTrial(const ZeroBubbleWork& work, TieBreaks ties)
      : work_(work), ties_(ties), rows_(work, kZeroBubbleLegs) {}

  /// False when there is too little memory.
  bool run() {
    first_round();
    for (int round = 1; round < work_.micro_batches; ++round) {
      stop_point();
      if (!forwards()) return false;
      for (int r = last(); r >= 0; --r)
        if (!put_with_weights(r, I)) return false;
    }
    rows_.put_all_weights();
    return true;
  }

  /// The longest time from the first start to the last end on a rank.
  double span() const {
    double longest = 0;
    for (int r = 0; r <= last(); ++r)
      longest = std::max(longest, rows_.end(r) - rows_.end_of(r, F, 0) + rows_.time_of(r, F));
    return longest;
  }
  const GreedyRows& rows() const { return rows_; }

 private:
  int last() const { return rows_.last_rank(); }

  void first_round() {
    for (int r = 0; r <= last(); ++r) rows_.put(r, F);
    std::vector<int> more(last() + 1, 0);  // Further forwards of each rank before its first gradient.
    double gradient = rows_.end(last()) + rows_.time_of(last(), I);
    for (int r = last() - 1; r >= 0; --r) {
      double used = rows_.memory(r), end = rows_.end(r);
      const double arrives = gradient + work_.hop, forward = rows_.time_of(r, F);
      while (1 + more[r] < work_.micro_batches && used + rows_.memory_change(r, F) <= work_.limit) {
        if (ties_.bubble_before_first_gradient ? end + forward > arrives : end >= arrives) break;
        used += rows_.memory_change(r, F);
        end += forward;
        ++more[r];
      }
      gradient = std::max(end, arrives) + rows_.time_of(r, I);
    }
    // Each rank runs one fewer than the rank before it while there are micro-batches left to start, and never more.
    for (int r = 1; r <= last(); ++r) {
      const int before = more[r - 1];
      const bool is_last = before + 1 == work_.micro_batches;
      more[r] = std::min(more[r], std::max(0, is_last ? before : before - 1));
    }
    for (int r = 0; r <= last(); ++r)
      for (int i = 0; i < more[r]; ++i) rows_.put(r, F);
    for (int r = last(); r >= 0; --r) rows_.put(r, I);
  }

  /// Whether a rank would rather wait for the next gradient than start one more forward.
  bool holds_back(int r) const {
    const double returns = rows_.end(r + 1) + rows_.time_of(r + 1, F) + rows_.time_of(r + 1, I) + work_.hop;
    if (rows_.end(r) >= returns) return true;
    double time = 0, used = rows_.memory(r) + rows_.memory_change(r, F);
    for (const int chunk : rows_.due_weights(r)) {
      if (used <= work_.limit) break;
      time += rows_.weight_time(r, chunk);
      used -= work_.costs[r][chunk].memory;
    }
    if (rows_.end(r) + rows_.time_of(r, F) + time <= returns) return false;
    return returns - rows_.end(r) <= rows_.worst_bubble() - rows_.bubble(r);
  }

  /// One more forward on every rank from which on all ranks want one.
  bool forwards() {
    std::vector<bool> wanted(last() + 1, false);
    for (int r = 0; r <= last(); ++r) {
      if (!rows_.has_more(r, F)) continue;
      const bool ahead = r < last() && rows_.count(r, F) >= rows_.count(r + 1, F) + 2;
      wanted[r] = !(ahead && ties_.gradient_first && holds_back(r));
    }
    for (int r = last() - 1; r >= 0; --r) wanted[r] = wanted[r] && wanted[r + 1];
    for (int r = 0; r <= last(); ++r)
      if (wanted[r] && !put_with_weights(r, F)) return false;
    return true;
  }

  /// A pass after the weight gradients that free its memory, that end before its input arrives, or that hide in a gap
  /// as long as the worst. False when there is too little memory.
  bool put_with_weights(int r, int leg) {
    if (!rows_.make_room(r, rows_.memory_change(r, leg))) return false;
    rows_.fill_gap(r, leg);
    const double gap = rows_.gap(r, leg);
    if (!rows_.due_weights(r).empty() && gap > 0 &&
        (ties_.fill_any_gap || gap > rows_.worst_bubble() - rows_.bubble(r)))
      rows_.put_weight(r);
    if (leg == I && r == 0 && !rows_.has_more(r, F))
      while (!rows_.due_weights(r).empty()) rows_.put_weight(r);
    rows_.put(r, leg);
    return true;
  }

  const ZeroBubbleWork& work_;
  TieBreaks ties_;
  GreedyRows rows_;
};

std::optional<ZeroBubbleTrial> best_trial(const ZeroBubbleWork& work) {
  std::optional<ZeroBubbleTrial> best;
  for (const bool before : {true, false})
    for (const bool gradient_first : {true, false})
      for (const bool any_gap : {true, false}) {
        ZeroBubbleTrial trial(work, {before, gradient_first, any_gap});
        if (trial.run() && (!best || trial.span() < best->span())) best.emplace(std::move(trial));
      }
  return best;
}

}  // namespace

Schedule automatic_zero_bubble(const ScheduleInput& in, std::string_view schedule, double memory) {
  const ZeroBubbleWork work(rank_costs(in), in.plan.micro_batches(StageId{0}), memory * 2 * in.layout.ranks());
  const auto best = best_trial(work);
  if (!best)
    throw Infeasible("memory",
                     fmt::format("the schedule '{}' cannot run in {:g} times {} activations on each rank", schedule,
                                 memory, in.layout.ranks()),
                     "a larger run.schedule.memory; 1 is always enough");
  return schedule_of(in, best->rows());
}

}  // namespace stagecraft
