// The schedule `1f1b-v`: 1F1B with two stages on each rank, in a V.

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/v_shape/steps.hpp"

// A building block of six steps repeats for every micro-batch: on each rank the forwards of both chunks (0, 1), and the
// backwards of the second and the first chunk (2, 3), which take two steps. Then each op moves ahead into free steps
// as far as its inputs and the peak of memory allow. O(ops log ops): the steps of a rank are laid out only where memory
// binds, and there they are as many as its ops.

namespace stagecraft::schedules {
namespace {

constexpr int kPeriod = 6, kLegs = 4;
using Starts = std::array<int, kLegs>;  ///< [leg]: when the first micro-batch runs on a rank.

bool is_forward(int leg) { return leg < 2; }
bool goes_down(int leg) { return leg % 2 == 0; }

/// Offsets modulo the period: along the way a forward takes one step on each rank and a backward two, with a gap of
/// three after every three backwards, so that no rank has two ops in one step.
std::vector<Starts> pattern(int ranks) {
  std::vector<Starts> at(ranks);
  const auto place = [&](int leg, int i) -> int& { return at[goes_down(leg) ? i : ranks - 1 - i][leg]; };
  int now = 0;
  for (const int leg : {0, 1})
    for (int i = 0; i < ranks; ++i) place(leg, i) = ++now;
  now += ranks % 3 == 0 ? 4 : 1;
  int laid = (3 - (ranks + 2) % 3) % 3;
  for (const int leg : {2, 3})
    for (int i = 0; i < ranks; ++i) {
      place(leg, i) = now;
      now += 2;
      if (++laid == 3) laid = 0, now += 3;
    }
  return at;
}

/// The first time from `from` on that lies at this place of the period.
int next_time(int from, int place) { return from + ((place - from) % kPeriod + kPeriod) % kPeriod; }

std::vector<Starts> first_block(int ranks) {
  std::vector<Starts> start = pattern(ranks);
  int time = kPeriod;
  for (int leg = 0; leg < kLegs; ++leg)
    for (int i = 0; i < ranks; ++i) {
      int& slot_start = start[goes_down(leg) ? i : ranks - 1 - i][leg];
      slot_start = next_time(time, slot_start);
      time = slot_start + 1;
    }
  return start;
}

/// The ops of all ranks in steps of one op.
class StepTable {
 public:
  StepTable(int ranks, int micro_batches) : ranks_(ranks), micro_batches_(micro_batches), placed_(ranks) {
    time_.reserve(std::size_t{kLegs} * ranks * micro_batches);
    for (const Starts& start : first_block(ranks))
      for (const int first : start)
        for (int m = 0; m < micro_batches; ++m) time_.push_back(first + kPeriod * m);
  }

  /// Moves every op ahead, in the order of time, then of ranks.
  void squeeze() {
    const std::vector<int> order = in_order(time_);
    peak_ = peak(order);
    const bool binds = peak_ < 2 * micro_batches_;
    const std::vector<StepState> steps(time_[order.back()] + 2, StepState::Free);
    if (binds) memory_.assign(ranks_, StepTree<Activations>(steps));
    for (const int op : order) move(op);
  }

  /// Calls visit(leg, micro-batch) for the ops of a rank in order.
  template <class Visit>
  void each(int rank, Visit&& visit) const {
    std::array<int, kLegs> next{};
    const auto time = [&](int leg) {
      const int micro = next[leg];
      return micro < micro_batches_ ? time_[id(rank, leg, micro)] : std::numeric_limits<int>::max();
    };
    for (int i = 0; i < kLegs * micro_batches_; ++i) {
      int first = 0;
      for (int leg = 1; leg < kLegs; ++leg)
        if (time(leg) < time(first)) first = leg;
      visit(first, next[first]++);
    }
  }

 private:
  int id(int r, int leg, int micro) const { return (r * kLegs + leg) * micro_batches_ + micro; }
  int rank(int op) const { return op / micro_batches_ / kLegs; }
  int leg(int op) const { return op / micro_batches_ % kLegs; }
  int end(int r, int leg, int micro) const { return time_[id(r, leg, micro)] + (is_forward(leg) ? 1 : 2); }

  /// The most activations on a rank before anything moves.
  int peak(const std::vector<int>& order) const {
    std::vector<int> alive(ranks_, 0);
    int peak = 0;
    for (const int op : order) peak = std::max(peak, alive[rank(op)] += is_forward(leg(op)) ? 1 : -1);
    return peak;
  }

  /// The first step after everything that the op needs.
  int earliest(int r, int leg, int micro) const {
    int t = micro > 0 ? end(r, leg, micro - 1) : 0;
    const int before = goes_down(leg) ? r - 1 : r + 1;
    if (before >= 0 && before < ranks_)
      t = std::max(t, end(before, leg, micro));
    else if (leg > 0)
      t = std::max(t, end(r, leg - 1, micro));
    return t;
  }

  /// The first op of a leg on a rank that ends after `time`, among the ops that have moved; searches from the newest
  /// back.
  int first_ending_after(int r, int leg, int time) const {
    int last = placed_[r][leg], first = last;
    for (int stride = 1; first > 0 && end(r, leg, first - 1) > time; stride *= 2)
      last = first - 1, first = std::max(0, first - stride);
    while (first < last) {
      const int middle = (first + last) / 2;
      if (end(r, leg, middle) > time)
        last = middle;
      else
        first = middle + 1;
    }
    return first;
  }

  /// The first `steps` free steps in a row from `from` on, or `until`. Ops that have not moved come later than that.
  int gap(int r, int from, int until, int steps) const {
    for (int leg = 0, clear = 0; clear < kLegs && from < until; leg = (leg + 1) % kLegs) {
      const int next = first_ending_after(r, leg, from);
      const bool taken = next < placed_[r][leg] && time_[id(r, leg, next)] < from + steps;
      if (taken) from = end(r, leg, next);
      clear = taken ? 0 : clear + 1;
    }
    return std::min(from, until);
  }

  /// Moves an op to the first free step (a backward: the first two) after what it needs; a forward also after the last
  /// peak of memory.
  void move(int op) {
    const int r = rank(op), its_leg = leg(op), t = time_[op];
    const bool forward = is_forward(its_leg);
    int from = earliest(r, its_leg, op % micro_batches_);
    if (forward && !memory_.empty()) from = std::max(from, memory_[r].last_with(peak_, t) + 1);
    const int to = time_[op] = gap(r, from, t, forward ? 1 : 2);
    ++placed_[r][its_leg];
    if (memory_.empty()) return;
    if (forward)
      memory_[r].set(to, {StepState::Takes});
    else
      memory_[r].set(to, {StepState::Busy, StepState::Frees});
  }

  int ranks_, micro_batches_, peak_ = 0;
  std::vector<int> time_;                      ///< [op]
  std::vector<Starts> placed_;                 ///< [rank][leg]: ops that have moved.
  std::vector<StepTree<Activations>> memory_;  ///< [rank]; empty when memory is no limit.
};

Schedule v_1f1b_whole(const ScheduleInput& in) {
  const int m = in.plan.micro_batches(StageId{0});
  StepTable table(in.layout.ranks(), m);
  table.squeeze();
  return by_rank(in, m, [&](const RankInput& r, RankOps& ops) {
    table.each(r.rank, [&](int leg, int micro) {
      ops.add(is_forward(leg) ? OpKind::Forward : OpKind::Backward, leg == 1 || leg == 2 ? 1 : 0, micro);
    });
  });
}

}  // namespace

extern const ScheduleDef v_1f1b{
    .name = "1f1b-v",
    .summary = "1F1B with two stages on each device, in a V: two thirds of its memory",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; sail-sg, v1f1b.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .whole = v_1f1b_whole,
};

}  // namespace stagecraft::schedules
