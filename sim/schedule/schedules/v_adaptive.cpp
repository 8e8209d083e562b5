#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/schedule/v_rows.hpp"
#include "sim/schedule/zero_bubble.hpp"

// All patterns of six steps in which both ways down the ranks take a number of steps for each of them, one number up to
// some rank and another behind it, and both ways up one. Modulo six a pass on the way up stands one step earlier on the
// next rank. The best order that comes from one of them, the first among equals.

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

/// What no order can beat: the work of the busiest rank.
double most_work(const std::vector<std::vector<RankCost>>& costs, int micro_batches) {
  double most = 0;
  for (const auto& chunks : costs) {
    double work = 0;
    for (const RankCost& c : chunks) work += (c.forward + c.input_gradient + c.weight_gradient).value;
    most = std::max(most, work * micro_batches);
  }
  return most;
}

/// The best rows within `most` activations on a rank; none when there are none.
VRows search(const ScheduleInput& in, int micro_batches, int most) {
  const int ranks = in.layout.ranks();
  const auto costs = rank_costs(in);
  const double hop = slowest_hop(in).value, bound = most_work(costs, micro_batches) * (1 + 1e-12);
  VRows best;
  double shortest = 0;
  for (const VPattern& top : tops())
    for (int first = 1; first <= kSlowest; ++first)
      for (int second = 1; second <= first; ++second)
        for (int turn = 1; turn <= (first == second ? 1 : ranks - 1); ++turn) {
          const auto patterns = patterns_from(top, first, second, turn, ranks);
          if (!patterns) continue;
          VAttempt attempt = rows_from(*patterns, micro_batches, most);
          if (attempt.peak > most) break;  // A later turn is slower: it keeps more.
          if (!attempt.rows) continue;
          const double time = span(*attempt.rows, costs, hop, micro_batches);
          if (best.empty() || time < shortest) best = std::move(*attempt.rows), shortest = time;
          if (shortest <= bound) return best;
        }
  return best;
}

Schedule whole(const ScheduleInput& in) {
  const int m = in.plan.micro_batches(StageId{0}), ranks = in.layout.ranks();
  const double memory = option_or(in, "memory", 1.0);
  const VRows best = search(in, m, static_cast<int>(std::min(memory, 1.0) * 2 * ranks + 1e-9));
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
