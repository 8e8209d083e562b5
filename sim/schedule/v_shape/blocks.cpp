// V-shaped schedules from a building block for each rank, repeated and compacted, for `v-half` and `v-min`; for the
// search of `synthesised` also a list of blocks to start from.

#include "sim/schedule/v_shape/blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <unordered_set>

#include "sim/schedule/v_shape/steps.hpp"

namespace stagecraft {
namespace {

constexpr int kBlockPeriod = 6, kLegs = 4, kWeights = 4;  // The fifth leg is weight gradients.

/// The times of one rank, [leg][micro-batch]; with or without the leg of weight gradients.
using Legs = std::vector<std::vector<int>>;
using Times = std::vector<Legs>;  // [rank]

bool goes_down(int leg) { return leg % 2 == 0; }

int last_time(const Legs& legs) {
  int last = 0;
  for (const auto& leg : legs) last = std::max(last, leg.back());
  return last;
}

struct Pass {
  int time, rank, leg, micro;
};

template <class Visit>
void each_pass(const Times& times, Visit&& visit) {
  for (int r = 0; r < static_cast<int>(times.size()); ++r)
    for (int leg = 0; leg < static_cast<int>(times[r].size()); ++leg) {
      const auto& list = times[r][leg];
      for (int m = 0; m < static_cast<int>(list.size()); ++m) visit(Pass{list[m], r, leg, m});
    }
}

/// Every op in the order of time, ranks, legs. Counting sort, since there may be millions.
std::vector<Pass> in_order(const Times& times) {
  int last = 0;
  for (const Legs& legs : times) last = std::max(last, last_time(legs));
  std::vector<std::size_t> place(last + 2, 0);
  each_pass(times, [&](const Pass& p) { ++place[p.time + 1]; });
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<Pass> sorted(place.back());
  each_pass(times, [&](const Pass& p) { sorted[place[p.time]++] = p; });
  return sorted;
}

/// The ops of one rank in the order of time. Sorting compares, since idle steps may be far more than ops.
std::vector<Pass> row_of(const Legs& legs) {
  std::vector<Pass> row;
  each_pass({legs}, [&](const Pass& p) { row.push_back(p); });
  std::sort(row.begin(), row.end(), [](const Pass& a, const Pass& b) { return a.time < b.time; });
  return row;
}

/// Calls weight(time, chunk) for the weight gradients that free steps have room for, the second chunk first, and at the
/// end for the rest.
template <class Weight>
void fill_weights(const std::vector<Pass>& row, Weight&& weight) {
  int due[2] = {0, 0}, free = 0;
  const auto one = [&] {
    const int chunk = due[1] > 0 ? 1 : 0;
    --due[chunk];
    weight(free++, chunk);
  };
  for (const Pass& p : row) {
    while (free < p.time && due[0] + due[1] > 0) one();
    free = std::max(free, p.time + 1);
    if (p.leg == 2 || p.leg == 3) ++due[p.leg == 2];
  }
  while (due[0] + due[1] > 0) one();
}

void add_weights(Legs& legs) {
  std::vector<int> times;
  fill_weights(row_of(legs), [&](int t, int) { times.push_back(t); });
  legs.push_back(std::move(times));
}

/// The latest time among the inputs of a pass of the first four legs; -1 when it has none.
int inputs_at(const Times& times, const Pass& p) {
  if (p.leg == kWeights) return -1;
  const auto time = [&](int rank, int leg) { return times[rank][leg][p.micro]; };
  int latest = p.leg > 0 ? time(p.rank, p.leg - 1) : -1;
  const int before = goes_down(p.leg) ? p.rank - 1 : p.rank + 1;
  if (before >= 0 && before < static_cast<int>(times.size())) latest = std::max(latest, time(before, p.leg));
  return latest;
}

StepState step_of(int leg, bool has_weights) {
  if (leg == kWeights) return StepState::Frees;
  return leg < 2 ? StepState::Takes : has_weights ? StepState::Busy : StepState::Due;
}

/// The activations of one rank, which weight gradients free. Without a leg of their own, weight gradients are assumed
/// to run in the free steps.
StepTree<ActivationsAndDue> memory_of(const Legs& legs) {
  std::vector<StepState> steps(last_time(legs) + 1, StepState::Free);
  each_pass({legs}, [&](const Pass& p) { steps[p.time] = step_of(p.leg, legs.size() > kLegs); });
  return StepTree<ActivationsAndDue>(std::move(steps));
}

/// The peak of that, without visiting every step.
int peak_of(const Legs& legs) {
  const bool has_weights = legs.size() > kLegs;
  int alive = 0, due = 0, free = 0, peak = 0;
  for (const Pass& p : row_of(legs)) {
    const int freed = std::min(due, p.time - free);
    alive -= freed, due -= freed, free = p.time + 1;
    if (p.leg < 2)
      peak = std::max(peak, ++alive);
    else if (p.leg == kWeights)
      --alive;
    else
      due += has_weights ? 0 : 1;
  }
  return peak;
}

/// Moves every op as early as possible in the given order, each one step long.
void squeeze(Times& times) {
  std::vector<int> next(times.size(), 0);
  for (const Pass& p : in_order(times)) {
    const int start = std::max(next[p.rank], inputs_at(times, p) + 1);
    times[p.rank][p.leg][p.micro] = start;
    next[p.rank] = start + 1;
  }
}

/// Moves ops of the warm-up and of the end into free steps before them. The steady part, between the first gradient
/// that is back on rank 0 and its last forward, stays; so does the warm-up when weight gradients have no times yet.
/// Memory is tracked only where it is a limit, and there the steps of a rank are about as many as its ops.
class Reordering {
 public:
  Reordering(Times& times, bool warm_up)
      : times_(times), warm_up_(warm_up), taken_(times.size()), gradients_(times.size()) {
    for (const Legs& legs : times) peak_ = std::max(peak_, peak_of(legs));
    if (peak_ < 2 * static_cast<int>(times[0][0].size()))
      for (const Legs& legs : times) memory_.push_back(memory_of(legs));
    else
      each_pass(times, [&](const Pass& p) { taken_[p.rank].insert(p.time); });
  }

  void run() {
    const int last = static_cast<int>(times_[0][0].size()) - 1;
    enum { WarmUp, Steady, End } part = WarmUp;
    for (const Pass& p : in_order(times_)) {
      if (part == WarmUp && p.leg == 3 && p.rank == 0) part = Steady;
      const bool stays = part == Steady || (part == WarmUp && !warm_up_);
      if (part == Steady && p.leg == 0 && p.micro == last) part = End;
      if (!stays) move(p);
      if (p.leg == 2 || p.leg == 3) note_gradient(p);
    }
  }

 private:
  void move(const Pass& p) {
    int& time = times_[p.rank][p.leg][p.micro];
    int after = inputs_at(times_, p);
    if (p.micro > 0) after = std::max(after, times_[p.rank][p.leg][p.micro - 1]);
    if (p.leg == kWeights) after = std::max(after, gradients_[p.rank][p.micro]);
    for (int t = after + 1; t < time; ++t)
      if (moved(p, time, t)) {
        time = t;
        return;
      }
  }

  /// False, without a change, when the step is not free or the peak would rise.
  bool moved(const Pass& p, int time, int to) {
    if (memory_.empty()) return taken_[p.rank].insert(to).second && taken_[p.rank].erase(time) > 0;
    StepTree<ActivationsAndDue>& memory = memory_[p.rank];
    if (!memory.free(to)) return false;
    const StepState step = step_of(p.leg, times_[p.rank].size() > kLegs);
    memory.set(time, {StepState::Free}), memory.set(to, {step});
    if (memory.whole().peak() <= peak_) return true;
    memory.set(to, {StepState::Free}), memory.set(time, {step});
    return false;
  }

  /// Keeps the times of a rank's gradients in order: the n-th weight gradient follows the n-th gradient.
  void note_gradient(const Pass& p) {
    auto& list = gradients_[p.rank];
    const int time = times_[p.rank][p.leg][p.micro];
    list.insert(std::upper_bound(list.begin(), list.end(), time), time);
  }

  Times& times_;
  bool warm_up_;
  std::vector<StepTree<ActivationsAndDue>> memory_;  ///< [rank]; empty when memory is no limit.
  std::vector<std::unordered_set<int>> taken_;       ///< [rank]: steps that are not free, when memory is no limit.
  std::vector<std::vector<int>> gradients_;
  int peak_ = 0;
};

void drop_weights(Times& times) {
  for (Legs& legs : times) legs.resize(kLegs);
}

void append_row(const Legs& legs, RankOps& ops) {
  std::vector<Pass> row = row_of(legs), weights;
  int done[2] = {0, 0};
  fill_weights(row, [&](int t, int chunk) { weights.push_back({t, chunk, kWeights, done[chunk]++}); });
  row.insert(row.end(), weights.begin(), weights.end());
  std::sort(row.begin(), row.end(), [](const Pass& a, const Pass& b) { return a.time < b.time; });
  for (const Pass& p : row) {
    if (p.leg == kWeights)
      ops.weight_gradient(p.rank, p.micro);
    else
      ops.add(p.leg < 2 ? OpKind::Forward : OpKind::InputGradient, p.leg == 1 || p.leg == 2 ? 1 : 0, p.micro);
  }
}

}  // namespace

Schedule from_v_blocks(const ScheduleInput& in, const std::vector<VBlock>& blocks) {
  const int m = in.plan.micro_batches(StageId{0});
  Times times;
  for (const VBlock& block : blocks) {
    Legs& legs = times.emplace_back(kLegs);
    for (int leg = 0; leg < kLegs; ++leg)
      for (int k = 0; k < m; ++k) legs[leg].push_back(block[leg] + kBlockPeriod * k);
  }
  for (Legs& legs : times) add_weights(legs);
  Reordering(times, true).run();
  squeeze(times);
  drop_weights(times);
  Reordering(times, false).run();
  for (Legs& legs : times) add_weights(legs);
  squeeze(times);
  drop_weights(times);
  return by_rank(in, m, [&](const RankInput& r, RankOps& ops) { append_row(times[r.rank], ops); });
}

std::vector<std::vector<VBlock>> v_block_shapes(int ranks, double max_alive) {
  constexpr int kSlowest = 5;
  struct Shape {
    double alive;
    std::vector<VBlock> block;
  };
  std::vector<Shape> shapes;
  const auto add = [&](int first, int second, int turn, const std::array<int, 3>& gaps) {
    std::vector<VBlock> block(ranks);
    int time = 0;
    for (int leg = 0; leg < kLegs; ++leg) {
      for (int i = 0; i < ranks; ++i) {
        block[goes_down(leg) ? i : ranks - 1 - i][leg] = time;
        time += goes_down(leg) && i + 1 < ranks ? (i + 1 < turn ? first : second) : 1;
      }
      if (leg + 1 < kLegs) time += gaps[leg];
    }
    double alive = 0;
    for (const VBlock& b : block) {
      unsigned taken = 0;
      for (const int t : b) taken |= 1U << (t % kBlockPeriod);
      if (std::popcount(taken) < kLegs) return;
      alive = std::max(alive, static_cast<double>(b[3] - b[0] + b[2] - b[1]) / kBlockPeriod);
    }
    if (alive <= max_alive) shapes.push_back({alive, std::move(block)});
  };
  for (int first = 1; first <= kSlowest; ++first)
    for (int second = 1; second <= kSlowest; ++second)
      for (int turn = first == second ? ranks : 1; turn <= ranks; ++turn)
        for (int gaps = 0; gaps < kBlockPeriod * kBlockPeriod * kBlockPeriod; ++gaps)
          add(first, second, turn,
              {gaps % kBlockPeriod, gaps / kBlockPeriod % kBlockPeriod, gaps / kBlockPeriod / kBlockPeriod});
  std::stable_sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) { return a.alive > b.alive; });
  std::vector<std::vector<VBlock>> blocks;
  for (Shape& s : shapes) blocks.push_back(std::move(s.block));
  return blocks;
}

}  // namespace stagecraft
