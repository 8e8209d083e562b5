#include <algorithm>
#include <array>
#include <vector>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/steps.hpp"

// A building block of six steps repeats for every micro-batch: on each rank the forwards of both chunks (0, 1), and the
// backwards of the second and the first chunk (2, 3), which take two steps. Then each op moves ahead into free steps
// as far as its inputs and the peak of memory allow. O(ops log steps).

namespace stagecraft::schedules {
namespace {

constexpr int kPeriod = 6, kLegs = 4;
using Starts = std::array<int, kLegs>;  ///< Of the first micro-batch on a rank.

bool is_forward(int leg) { return leg < 2; }
bool goes_down(int leg) { return leg % 2 == 0; }

/// Offsets modulo the period: along the way each leg takes the next step, and backwards two, with a gap of three
/// wherever three of them have been laid, so that no rank has two ops in one step.
std::vector<Starts> pattern(int ranks) {
  std::vector<Starts> at(static_cast<std::size_t>(ranks));
  const auto place = [&](int leg, int i) -> int& {
    return at[static_cast<std::size_t>(goes_down(leg) ? i : ranks - 1 - i)][static_cast<std::size_t>(leg)];
  };
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
      int& own = start[static_cast<std::size_t>(goes_down(leg) ? i : ranks - 1 - i)][static_cast<std::size_t>(leg)];
      own = next_time(time, own);
      time = own + 1;
    }
  return start;
}

/// The table of all ranks in steps of one op.
class Table {
 public:
  Table(int ranks, int micro_batches) : ranks_(ranks), micro_batches_(micro_batches), start_(first_block(ranks)) {
    for (const Starts& s : start_) length_ = std::max(length_, *std::max_element(s.begin(), s.end()) + 2);
    length_ += kPeriod * (micro_batches - 1) + 1;
    for (int r = 0; r < ranks; ++r) fill(r);
    for (const auto& row : rows_) peak_ = std::max(peak_, row.whole().most);
  }

  /// Moves every op ahead, in the order of time, then of ranks.
  void squeeze() {
    for (const int op : in_order(time_)) move(op);
  }

  /// Ops of a rank in order: leg and micro-batch.
  template <class Visit>
  void each(int rank, Visit&& visit) const {
    std::array<int, kLegs> next{};
    const auto time = [&](int leg) {
      const int micro = next[at(leg)];
      return micro < micro_batches_ ? time_[at(id(rank, leg, micro))] : length_;
    };
    for (int i = 0; i < kLegs * micro_batches_; ++i) {
      int first = 0;
      for (int leg = 1; leg < kLegs; ++leg)
        if (time(leg) < time(first)) first = leg;
      visit(first, next[at(first)]++);
    }
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int id(int r, int leg, int micro) const { return (r * kLegs + leg) * micro_batches_ + micro; }

  void fill(int r) {
    std::vector<Step> steps(at(length_) + 1, Step::Free);
    for (int leg = 0; leg < kLegs; ++leg)
      for (int m = 0; m < micro_batches_; ++m) {
        const int t = start_[at(r)][at(leg)] + kPeriod * m;
        time_.push_back(t);
        steps[at(t)] = is_forward(leg) ? Step::Takes : Step::Busy;
        if (!is_forward(leg)) steps[at(t) + 1] = Step::Frees;
      }
    rows_.emplace_back(std::move(steps));
  }

  /// The step behind everything the op needs.
  int earliest(int r, int leg, int micro) const {
    const auto end = [&](int rank, int l, int m) { return time_[at(id(rank, l, m))] + (is_forward(l) ? 1 : 2); };
    int t = micro > 0 ? end(r, leg, micro - 1) : 0;
    const int before = goes_down(leg) ? r - 1 : r + 1;
    if (before >= 0 && before < ranks_)
      t = std::max(t, end(before, leg, micro));
    else if (leg > 0)
      t = std::max(t, end(r, leg - 1, micro));
    return t;
  }

  /// To the first free step, or the first two, behind what it needs; forwards behind the last peak too.
  void move(int op) {
    const int r = op / micro_batches_ / kLegs, leg = op / micro_batches_ % kLegs, t = time_[at(op)];
    const bool forward = is_forward(leg);
    Steps<Kept>& row = rows_[at(r)];
    int to = earliest(r, leg, op % micro_batches_);
    if (forward) to = std::max(to, row.last_with(peak_, t) + 1);
    while (to < t && !(row.free(to) && (forward || to + 1 == t || row.free(to + 1)))) ++to;
    if (to >= t) return;
    time_[at(op)] = to;
    if (forward)
      row.set(t, {Step::Free}), row.set(to, {Step::Takes});
    else
      row.set(t, {Step::Free, Step::Free}), row.set(to, {Step::Busy, Step::Frees});
  }

  int ranks_, micro_batches_, length_ = 0, peak_ = 0;
  std::vector<Starts> start_;
  std::vector<Steps<Kept>> rows_;
  std::vector<int> time_;  ///< Of each op.
};

Schedule whole(const ScheduleInput& in) {
  const int m = in.plan.micro_batches(StageId{0});
  Table table(in.layout.ranks(), m);
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
    .summary = "1F1B with two stages on each device, there and back: two thirds of its memory",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; sail-sg, v1f1b.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .whole = whole,
};

}  // namespace stagecraft::schedules
