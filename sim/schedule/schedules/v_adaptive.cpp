#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/schedule/v_rows.hpp"
#include "sim/schedule/zero_bubble.hpp"

// All patterns of six steps in which both ways down the ranks take a number of steps for each of them, one number up to
// some rank and another behind it, and both ways up one. Modulo six a pass on the way up stands one step earlier on the
// next rank. The best order that comes from one of them, the first among equals. O(ops) for equal times, messages
// that cost nothing and two micro-batches or more for each rank, where one is as short as its floor; else up to
// O(ops * ranks), since the patterns grow with the ranks.

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{.title = "There and back, searched for under a limit of memory.",
                             .fields = {memory_field("1")}};

constexpr int kPeriod = 6, kSlowest = 5;
using Patterns = std::vector<VPattern>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }
std::size_t at(VPass pass) { return static_cast<std::size_t>(pass); }

/// Puts both weight gradients on the first free step behind their gradients; nothing when two passes share a step.
std::optional<VPattern> with_weights(VPattern p) {
  std::array<bool, kPeriod> taken{};
  for (const VPass pass : {VPass::F0, VPass::F1, VPass::I1, VPass::I0}) {
    bool& step = taken[at(p[at(pass)])];
    if (step) return {};
    step = true;
  }
  for (const auto& [gradient, weight] : {std::pair{VPass::I1, VPass::W1}, std::pair{VPass::I0, VPass::W0}}) {
    int step = p[at(gradient)];
    while (taken[at(step)]) step = (step + 1) % kPeriod;
    p[at(weight)] = step, taken[at(step)] = true;
  }
  return p;
}

/// One for each rank: down the ranks `first` steps a rank for `turn` of them, then `second`; up them one.
std::optional<Patterns> patterns_from(const VPattern& top, int first, int second, int turn, int ranks) {
  Patterns patterns{top};
  for (int r = 0; r + 1 < ranks; ++r) {
    VPattern next = patterns.back();
    const int down = r < turn ? first : second;
    for (const VPass pass : {VPass::F0, VPass::I1}) next[at(pass)] = (next[at(pass)] + down) % kPeriod;
    for (const VPass pass : {VPass::F1, VPass::I0}) next[at(pass)] = (next[at(pass)] + kPeriod - 1) % kPeriod;
    const auto whole = with_weights(next);
    if (!whole) return {};
    patterns.push_back(*whole);
  }
  return patterns;
}

double seconds(const RankCost& cost, VPass pass) {
  if (is_forward(pass)) return cost.forward.value;
  return (pass == VPass::I0 || pass == VPass::I1 ? cost.input_gradient : cost.weight_gradient).value;
}

/// The longest time from the start of a rank's first pass to the end of its last, every pass as early as it can.
double span(const VRows& rows, const std::vector<std::vector<RankCost>>& costs, double hop, int micro_batches) {
  const int ranks = static_cast<int>(rows.size());
  std::vector<double> ends[kVPasses];
  for (auto& list : ends) list.assign(rows.size() * at(micro_batches), 0);
  std::vector<std::array<int, kVPasses>> counts(rows.size());
  std::vector<double> now(rows.size(), 0), start(rows.size(), -1);
  for (std::size_t t = 0; t < rows.front().size(); ++t)
    for (int r = 0; r < ranks; ++r) {
      const VPass pass = rows[at(r)][t];
      if (pass == VPass::Free) continue;
      const int micro = counts[at(r)][at(pass)]++, from = comes_from(pass, r);
      double begin = now[at(r)];
      if (from >= 0 && from < ranks) begin = std::max(begin, ends[at(pass)][at(from * micro_batches + micro)] + hop);
      if (start[at(r)] < 0) start[at(r)] = begin;
      now[at(r)] = begin + seconds(costs[at(r)][at(chunk_of(pass))], pass);
      ends[at(pass)][at(r * micro_batches + micro)] = now[at(r)];
    }
  double longest = 0;
  for (int r = 0; r < ranks; ++r) longest = std::max(longest, now[at(r)] - start[at(r)]);
  return longest;
}

/// Every first row of a pattern, those of the forward of chunk 1 first.
std::vector<VPattern> tops() {
  std::vector<VPattern> all;
  for (int f = 1; f < kPeriod; ++f)
    for (int down = 1; down < kPeriod; ++down)
      for (int up = 1; up < kPeriod; ++up)
        if (const auto whole = with_weights({0, f, down, up, 0, 0})) all.push_back(*whole);
  return all;
}

/// What no order takes less than that keeps at most some activations on a rank. Behind the first forward of chunk 1,
/// and the first gradient of each chunk, stands all that micro-batch 0 has to come round for; before it a rank can only
/// run what needs no such pass and fits.
class Floor {
 public:
  Floor(const std::vector<std::vector<RankCost>>& costs, double hop, int micro_batches)
      : costs_(costs), hop_(hop), micro_batches_(micro_batches), ways_(costs.size()) {
    const int last = static_cast<int>(costs.size()) - 1;
    for (int r = last; r >= 0; --r) {
      ways_[at(r)][0] = turned(r, VPass::F0, VPass::F1, r < last ? r + 1 : -1, 0);
      ways_[at(r)][2] = turned(r, VPass::I1, VPass::I0, r < last ? r + 1 : -1, 2);
    }
    for (int r = 0; r <= last; ++r) ways_[at(r)][1] = turned(r, VPass::F1, VPass::I1, r - 1, 1);
  }

  double operator()(int activations) const {
    double most = 0;
    for (int r = 0; r < static_cast<int>(costs_.size()); ++r) most = std::max(most, of(r, activations));
    return most;
  }

 private:
  double time(VPass pass, int r) const { return seconds(costs_[at(r)][at(chunk_of(pass))], pass); }

  /// From the start of a pass on a rank to that of its micro-batch's next leg there, where the way turns behind the
  /// rank `next`; -1 where it turns on the rank itself.
  double turned(int r, VPass out, VPass back, int next, std::size_t leg) const {
    return time(out, r) + (next < 0 ? 0 : 2 * hop_ + time(back, next) + ways_[at(next)][leg]);
  }

  double of(int r, int activations) const {
    const double first = time(VPass::F0, r), second = time(VPass::F1, r), m = micro_batches_;
    const double turn = time(VPass::I1, r) + time(VPass::W1, r);
    const double work = m * (first + second + turn + time(VPass::I0, r) + time(VPass::W0, r));
    const double fit = std::min<double>(m, activations), others = std::min(m, activations - fit);
    const double before_second = std::min<double>(m, activations - 1) * first;
    const double before_turn = fit * std::max(first, second) + others * std::min(first, second);
    const double before_last = fit * first + m * (second + turn);
    const auto& way = ways_[at(r)];
    return work + std::max({0.0, way[0] - before_second, way[0] + way[1] - before_turn,
                            way[0] + way[1] + way[2] - before_last});
  }

  const std::vector<std::vector<RankCost>>& costs_;
  double hop_;
  int micro_batches_;
  std::vector<std::array<double, 3>> ways_;  ///< Forward and forward, forward and gradient, gradient and gradient.
};

struct Candidate {
  VPattern top;
  int first, second, turn, place;
  double floor = 0;
};

/// Looks for the best rows within `most` activations on a rank, the first among equals.
class Search {
 public:
  Search(const ScheduleInput& in, int micro_batches, int most)
      : ranks_(in.layout.ranks()),
        micro_batches_(micro_batches),
        most_(most),
        costs_(rank_costs(in)),
        hop_(slowest_hop(in).value),
        floor_(costs_, hop_, micro_batches),
        least_(floor_(most) * (1 + kRounding)) {}

  /// Those that may be as short as any first, then the others as long as they may be shorter than the best.
  VRows run() {
    for (const VPattern& top : tops())
      for (int first = 1; first <= kSlowest; ++first)
        for (int second = 1; second <= first; ++second)
          for (int turn = 1; turn <= (first == second ? 1 : ranks_ - 1); ++turn) {
            if (!look({top, first, second, turn, place_++})) break;
            if (found() && shortest_ <= least_) return std::move(best_);
          }
    std::stable_sort(later_.begin(), later_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.floor < b.floor; });
    for (const Candidate& c : later_) {
      if (found() && c.floor * (1 - kRounding) > shortest_) break;
      attempt(c, *patterns(c));
    }
    return std::move(best_);
  }

 private:
  static constexpr double kRounding = 1e-12;

  bool found() const { return !best_.empty(); }
  std::optional<Patterns> patterns(const Candidate& c) const {
    return patterns_from(c.top, c.first, c.second, c.turn, ranks_);
  }

  /// False when it keeps too much, and so does every later turn, which is slower. What few micro-batches keep under a
  /// low limit is known from their rows alone.
  bool look(Candidate c) {
    const auto rows = patterns(c);
    if (!rows) return true;
    if (micro_batches_ < 2 * ranks_ && most_ < 2 * ranks_) return attempt(c, *rows);
    const int peak = peak_of(*rows, std::max(micro_batches_, 2 * ranks_));
    if (peak > most_) return false;
    c.floor = floor_(peak);
    if (c.floor <= least_) return attempt(c, *rows);
    later_.push_back(c);
    return true;
  }

  bool attempt(const Candidate& c, const Patterns& patterns) {
    VAttempt made = rows_from(patterns, micro_batches_, most_);
    if (made.peak > most_) return false;
    if (!made.rows) return true;
    const double time = span(*made.rows, costs_, hop_, micro_batches_);
    if (found() && (time > shortest_ || (time == shortest_ && c.place > best_place_))) return true;
    best_ = std::move(*made.rows), shortest_ = time, best_place_ = c.place;
    return true;
  }

  int ranks_, micro_batches_, most_, place_ = 0, best_place_ = 0;
  std::vector<std::vector<RankCost>> costs_;
  double hop_;
  Floor floor_;
  double least_, shortest_ = 0;
  VRows best_;
  std::vector<Candidate> later_;
};

Schedule whole(const ScheduleInput& in) {
  const int m = in.plan.micro_batches(StageId{0}), ranks = in.layout.ranks();
  const double memory = option_or(in, "memory", 1.0);
  const VRows best = Search(in, m, static_cast<int>(std::min(memory, 1.0) * 2 * ranks + 1e-9)).run();
  if (best.empty())
    throw Infeasible("memory",
                     fmt::format("the schedule 'v-adaptive' finds no order in {:g} times {} activations on each rank",
                                 memory, ranks),
                     "a larger run.schedule.memory; 1 is always enough");
  return by_rank(in, m, [&](const RankInput& r, RankOps& ops) {
    constexpr OpKind kinds[] = {OpKind::Forward,       OpKind::Forward,        OpKind::InputGradient,
                                OpKind::InputGradient, OpKind::WeightGradient, OpKind::WeightGradient};
    std::array<int, kVPasses> count{};
    for (const VPass pass : best[at(r.rank)])
      if (pass != VPass::Free) ops.add(kinds[at(pass)], chunk_of(pass), count[at(pass)]++);
  });
}

}  // namespace

extern const ScheduleDef v_adaptive{
    .name = "v-adaptive",
    .summary = "Two stages on each device, there and back: the shortest that fits a limit of memory",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; sail-sg, v_auto_schedule.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .fields = &fields,
    .whole = whole,
};

}  // namespace stagecraft::schedules
