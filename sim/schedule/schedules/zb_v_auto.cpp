#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/schedule/zero_bubble.hpp"

// A micro-batch takes four legs: forward down the ranks (chunk 0), forward up (chunk 1), its gradient down (chunk 1),
// up (chunk 0). Rounds of one gradient and one forward on each rank, with weight gradients where they fill a gap or
// free memory. O(ops).

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{.title = "Zero bubble from the costs, there and back.", .fields = {memory_field("1")}};

constexpr int kLegs = 4;

struct Problem {
  std::vector<std::vector<RankCost>> ranks;  ///< [rank][chunk].
  int micro_batches;
  double hop, limit;
};

struct Placed {
  OpKind kind;
  int chunk, micro;
};

struct Rank {
  std::vector<Placed> row;
  int count[kLegs] = {0, 0, 0, 0};
  double end = 0, memory = 0, bubble = 0, allowance = 0;
  std::deque<Placed> weights;
};

int chunk_of(int leg) { return leg == 1 || leg == 2 ? 1 : 0; }
bool goes_down(int leg) { return leg % 2 == 0; }
bool is_forward(int leg) { return leg < 2; }

/// One schedule. `approved` has the bubbles of an earlier one: a rank may have as much as the worst had more.
class Trial {
 public:
  Trial(const Problem& problem, bool fill_forward, bool fill_gradient, const std::vector<double>* approved)
      : problem_(problem), fill_forward_(fill_forward), fill_gradient_(fill_gradient), ranks_(problem.ranks.size()) {
    const std::size_t pieces = ranks_.size() * problem.micro_batches;
    for (auto& ends : ends_) ends.assign(pieces, -1);
    if (!approved) return;
    const double most = *std::max_element(approved->begin(), approved->end());
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].allowance = most - (*approved)[r];
  }

  /// False when the memory is too little.
  bool run() {
    warm_up();
    for (int round = 0; round < 2 * problem_.micro_batches && !failed_; ++round) {
      for (int r = 0; r <= last(); ++r) make_room(r, -1);
      gradients();
      forwards();
    }
    for (int r = 0; r <= last(); ++r)
      while (!of(r).weights.empty()) put_weight(r);
    return !failed_;
  }

  double bubble() const { return worst_; }
  std::vector<double> bubbles() const {
    std::vector<double> all;
    for (const Rank& rank : ranks_) all.push_back(rank.bubble);
    return all;
  }
  const std::vector<Placed>& row(int r) const { return ranks_[r].row; }

 private:
  int last() const { return static_cast<int>(ranks_.size()) - 1; }
  Rank& of(int r) { return ranks_[r]; }
  double& end_of(int leg, int r, int micro) {
    return ends_[leg][static_cast<std::size_t>(r) * problem_.micro_batches + micro];
  }
  const RankCost& cost(int r, int chunk) const { return problem_.ranks[r][chunk]; }
  bool more(int r, int leg) { return of(r).count[leg] < problem_.micro_batches; }

  /// The rank that the next micro-batch of a leg comes from, or -1 at the ends.
  int from(int r, int leg) const { return goes_down(leg) ? r - 1 : r < last() ? r + 1 : -1; }
  bool arrived(int r, int leg) {
    const int before = from(r, leg);
    return before < 0 || end_of(leg, before, of(r).count[leg]) >= 0;
  }
  double arrival(int r, int leg) {
    const int before = from(r, leg);
    return before < 0 ? -1 : end_of(leg, before, of(r).count[leg]) + problem_.hop;
  }

  void put(int r, int leg) {
    Rank& rank = of(r);
    const int chunk = chunk_of(leg), micro = rank.count[leg];
    const bool forward = is_forward(leg);
    const double change = cost(r, chunk).memory * (forward ? 2 : -1);
    if (!more(r, leg) || !arrived(r, leg) || (leg > 0 && end_of(leg - 1, r, micro) < 0) ||
        rank.memory + change > problem_.limit) {
      failed_ = true;
      return;
    }
    const double time = (forward ? cost(r, chunk).forward : cost(r, chunk).input_gradient).value;
    const double without = rank.end + time, end = std::max(without, arrival(r, leg) + time);
    if (rank.count[0] > 0) rank.bubble += end - without, worst_ = std::max(worst_, rank.bubble);
    rank.end = end_of(leg, r, micro) = end;
    rank.memory += change;
    rank.row.push_back({forward ? OpKind::Forward : OpKind::InputGradient, chunk, micro});
    if (!forward) rank.weights.push_back({OpKind::WeightGradient, chunk, micro});
    ++rank.count[leg];
  }

  void put_weight(int r) {
    Rank& rank = of(r);
    const Placed op = rank.weights.front();
    rank.weights.pop_front();
    rank.end += cost(r, op.chunk).weight_gradient.value;
    rank.memory -= cost(r, op.chunk).memory;
    rank.row.push_back(op);
  }

  void make_room(int r, double change) {
    while (of(r).memory + change > problem_.limit) {
      if (of(r).weights.empty()) {
        failed_ = true;
        return;
      }
      put_weight(r);
    }
  }

  /// Weight gradients that fit before the input is there, and one more where the gap would make this rank the worst.
  void fill(int r, int leg, bool also_worst) {
    Rank& rank = of(r);
    const double arrives = arrival(r, leg);
    const bool waits = from(r, leg) >= 0;
    while (!rank.weights.empty() && waits &&
           arrives >= rank.end + cost(r, rank.weights.front().chunk).weight_gradient.value)
      put_weight(r);
    if (!rank.weights.empty() && also_worst && waits &&
        arrives - rank.end > std::max(worst_, rank.allowance) - rank.bubble)
      put_weight(r);
  }

  void warm_up() {
    for (int r = 0; r <= last(); ++r) put(r, 0);
    for (int r = last(); r >= 0 && !failed_; --r) {
      if (r < last()) {
        const double back = end_of(1, r + 1, 0) + problem_.hop;
        while (!failed_ && of(r).memory + cost(r, 0).memory * 2 * (2 + 2 * r) <= problem_.limit &&
               of(r).end + cost(r, 0).forward.value <= back && more(r, 0))
          for (int j = 0; j <= r; ++j) put(j, 0);
      }
      put(r, 1);
    }
    int leg = 0;
    for (int r = 1; r <= last() && !failed_; ++r)
      while (!failed_ && behind(r)) {
        for (int j = last(); j >= r; --j)
          if (more(j, leg)) put(j, leg);
        leg = 1 - leg;
      }
  }

  /// Whether a rank has fewer forwards than the one before it.
  bool behind(int r) {
    const Rank &own = of(r), &before = of(r - 1);
    return own.count[0] + own.count[1] < before.count[0] + before.count[1] ||
           (own.count[1] <= before.count[1] && before.count[1] < problem_.micro_batches);
  }

  void gradients() {
    std::vector<std::pair<int, int>> turns;  // Rank and leg: those that go up first, from the last rank on.
    std::vector<int> down;
    for (int r = last(); r >= 0; --r) {
      const bool has = of(r).count[3] < of(r).count[2];
      if (has && (arrived(r, 3) || !more(r, 2)))
        turns.emplace_back(r, 3);
      else
        down.push_back(r);
    }
    for (auto r = down.rbegin(); r != down.rend(); ++r) turns.emplace_back(*r, 2);
    for (const auto& [r, leg] : turns) {
      if (failed_ || !more(r, leg)) {
        failed_ = true;
        return;
      }
      fill(r, leg, leg == 3 || fill_gradient_);
      put(r, leg);
    }
  }

  void forwards() {
    for (int r = 0; r <= last() && !failed_; ++r) {
      if (!more(r, 1)) continue;
      int leg = -1;
      if (of(r).count[1] >= of(r).count[0])
        leg = 0;
      else if (arrived(r, 1))
        leg = 1;
      else if (more(r, 0) && arrived(r, 0))
        leg = 0;
      if (leg < 0) continue;
      make_room(r, 2 * cost(r, leg).memory);
      if (failed_) return;
      fill(r, leg, fill_forward_);
      put(r, leg);
    }
  }

  const Problem& problem_;
  bool fill_forward_, fill_gradient_, failed_ = false;
  std::vector<Rank> ranks_;
  std::vector<double> ends_[kLegs];
  double worst_ = 0;  ///< The largest bubble of a rank so far.
};

/// Tries again with the bubbles that there were as long as that helps.
std::optional<Trial> improved(const Problem& problem, bool fill_forward, bool fill_gradient) {
  std::optional<Trial> best;
  std::vector<double> approved;
  for (;;) {
    Trial trial(problem, fill_forward, fill_gradient, best ? &approved : nullptr);
    if (!trial.run() || (best && trial.bubble() >= best->bubble())) return best;
    approved = trial.bubbles();
    best.emplace(std::move(trial));
  }
}

Schedule whole(const ScheduleInput& in) {
  const double memory = option_or(in, "memory", 1.0);
  const Problem problem{rank_costs(in), in.plan.micro_batches(StageId{0}), slowest_hop(in).value,
                        memory * 4 * in.layout.ranks()};
  std::optional<Trial> best;
  for (const bool gradient : {true, false})
    for (const bool forward : {true, false})
      if (auto trial = improved(problem, forward, gradient); trial && (!best || trial->bubble() < best->bubble()))
        best.emplace(std::move(*trial));
  if (!best)
    throw Infeasible("memory",
                     fmt::format("the schedule 'zb-v-auto' finds no order in {:g} times {} activations on each rank",
                                 memory, in.layout.ranks()),
                     "a larger run.schedule.memory, or the schedule zb-v");
  return by_rank(in, problem.micro_batches, [&](const RankInput& r, RankOps& ops) {
    for (const auto& [kind, chunk, micro] : best->row(r.rank)) ops.add(kind, chunk, micro);
  });
}

}  // namespace

extern const ScheduleDef zb_v_auto{
    .name = "zb-v-auto",
    .summary = "zb-v with an order found from the costs",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6; sail-sg, zbv.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .fields = &fields,
    .whole = whole,
};

}  // namespace stagecraft::schedules
