#include "sim/schedule/zero_bubble.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

enum Kind { F, I, W };

/// How ties are broken.
struct Ways {
  bool bubble_before_first_gradient, gradient_first, fill_any_gap;
};

struct Problem {
  std::vector<RankCost> ranks;
  int micro_batches;
  double hop, limit;
};

/// One rank while its row grows.
struct Rank {
  std::vector<Kind> row;
  int count[3] = {0, 0, 0};
  double end = 0, memory = 0, bubble = 0, first_end = 0;
};

class Trial {
 public:
  Trial(const Problem& problem, Ways ways) : problem_(problem), ways_(ways), ranks_(problem.ranks.size()) {
    for (auto& ends : ends_) ends.assign(ranks_.size() * problem.micro_batches, 0);
  }

  /// False when the memory is too little.
  bool run() {
    first_round();
    for (int round = 1; round < problem_.micro_batches; ++round) {
      if (!forwards()) return false;
      for (int r = last(); r >= 0; --r)
        if (!gradient(r)) return false;
    }
    for (int r = 0; r <= last(); ++r)
      while (of(r).count[W] < problem_.micro_batches) put(r, W);
    return true;
  }

  /// The longest time from the first start to the last end on a rank.
  double span() const {
    double longest = 0;
    for (int r = 0; r <= last(); ++r) longest = std::max(longest, ranks_[r].end - ranks_[r].first_end + seconds(r, F));
    return longest;
  }
  const std::vector<Kind>& row(int r) const { return ranks_[r].row; }

 private:
  int last() const { return static_cast<int>(ranks_.size()) - 1; }
  Rank& of(int r) { return ranks_[r]; }
  double& end_of(Kind kind, int r, int micro) {
    return ends_[kind][static_cast<std::size_t>(r) * problem_.micro_batches + micro];
  }

  double seconds(int r, Kind kind) const {
    const RankCost& c = problem_.ranks[r];
    return (kind == F ? c.forward : kind == I ? c.input_gradient : c.weight_gradient).value;
  }
  double memory(int r, Kind kind) const { return problem_.ranks[r].memory * (kind == F ? 2 : -1); }

  /// When the next op of a kind can start for its input; minus infinity when it needs none from another rank.
  double arrival(int r, Kind kind) {
    if (kind == F && r > 0) return end_of(F, r - 1, of(r).count[F]) + problem_.hop;
    if (kind == I && r < last()) return end_of(I, r + 1, of(r).count[I]) + problem_.hop;
    return -kInfinity;
  }

  void put(int r, Kind kind) {
    Rank& rank = of(r);
    const double cost = seconds(r, kind), without = rank.end + cost;
    const double end = kind == W ? without : std::max(without, arrival(r, kind) + cost);
    if (rank.count[F] > 0) rank.bubble += end - without, worst_ = std::max(worst_, rank.bubble);
    if (rank.row.empty()) rank.first_end = end;
    rank.end = end;
    rank.memory += memory(r, kind);
    end_of(kind, r, rank.count[kind]++) = end;
    rank.row.push_back(kind);
  }

  void first_round() {
    for (int r = 0; r <= last(); ++r) put(r, F);
    std::vector<int> more(ranks_.size(), 0);
    double gradient = of(last()).end + seconds(last(), I);
    for (int r = last() - 1; r >= 0; --r) {
      double used = of(r).memory, end = of(r).end;
      const double arrives = gradient + problem_.hop;
      while (1 + more[r] < problem_.micro_batches && used + memory(r, F) <= problem_.limit) {
        if (ways_.bubble_before_first_gradient ? end + seconds(r, F) > arrives : end >= arrives) break;
        used += memory(r, F);
        end += seconds(r, F);
        ++more[r];
      }
      gradient = std::max(end, arrives) + seconds(r, I);
    }
    // Each rank one fewer than the one before it, as long as there are micro-batches left to start, and never more.
    for (int r = 1; r <= last(); ++r) {
      const int before = more[r - 1];
      const bool all = before + 1 == problem_.micro_batches;
      more[r] = std::min(more[r], std::max(0, all ? before : before - 1));
    }
    for (int r = 0; r <= last(); ++r)
      for (int i = 0; i < more[r]; ++i) put(r, F);
    for (int r = last(); r >= 0; --r) put(r, I);
  }

  /// Whether a rank would rather wait for the next gradient than start one more forward.
  bool holds_back(int r) {
    Rank& rank = of(r);
    Rank& next = of(r + 1);
    const double returns = next.end + seconds(r + 1, F) + seconds(r + 1, I) + problem_.hop;
    if (rank.end >= returns) return true;
    double time = 0, used = rank.memory + memory(r, F);
    for (int w = rank.count[W]; used > problem_.limit && w < rank.count[I]; ++w) {
      time += seconds(r, W);
      used += memory(r, W);
    }
    if (rank.end + seconds(r, F) + time <= returns) return false;
    return returns - rank.end <= worst_ - rank.bubble;
  }

  bool forwards() {
    std::vector<bool> wanted(ranks_.size(), false);
    for (int r = 0; r <= last(); ++r) {
      if (of(r).count[F] >= problem_.micro_batches) continue;
      const bool ahead = r < last() && of(r).count[F] >= of(r + 1).count[F] + 2;
      wanted[r] = !(ahead && ways_.gradient_first && holds_back(r));
    }
    for (int r = last() - 1; r >= 0; --r) wanted[r] = wanted[r] && wanted[r + 1];
    for (int r = 0; r <= last(); ++r)
      if (wanted[r]) {
        if (!make_room(r, F)) return false;
        fill(r, F);
      }
    return true;
  }

  bool gradient(int r) {
    if (!make_room(r, I)) return false;
    fill(r, I);
    return true;
  }

  bool make_room(int r, Kind kind) {
    while (of(r).memory + memory(r, kind) > problem_.limit) {
      if (of(r).count[W] >= of(r).count[I]) return false;
      put(r, W);
    }
    return true;
  }

  /// Weight gradients that fit before the op's input is there, or that hide in a gap as long as the worst, then the op.
  void fill(int r, Kind kind) {
    Rank& rank = of(r);
    const double arrives = arrival(r, kind);
    while (rank.count[W] < rank.count[I] && rank.end + seconds(r, W) <= arrives) put(r, W);
    if (rank.count[W] < rank.count[I] && rank.end < arrives &&
        (ways_.fill_any_gap || arrives - rank.end > worst_ - rank.bubble))
      put(r, W);
    if (kind == I && r == 0 && rank.count[F] == problem_.micro_batches)
      while (rank.count[W] < rank.count[I]) put(r, W);
    put(r, kind);
  }

  const Problem& problem_;
  Ways ways_;
  std::vector<Rank> ranks_;
  std::vector<double> ends_[3];
  double worst_ = 0;  ///< The largest bubble of a rank so far.
};

std::optional<Trial> best_trial(const Problem& problem) {
  std::optional<Trial> best;
  for (const bool before : {true, false})
    for (const bool gradient_first : {true, false})
      for (const bool any_gap : {true, false}) {
        Trial trial(problem, {before, gradient_first, any_gap});
        if (trial.run() && (!best || trial.span() < best->span())) best.emplace(std::move(trial));
      }
  return best;
}

}  // namespace

config::Field memory_field(std::string fallback) {
  return config::real("memory", 0.01, 1e6)
      .fallback(std::move(fallback))
      .doc("Activations that a rank may keep, as a multiple of the ranks' number: 1 is what 1F1B needs.");
}

Schedule automatic_zero_bubble(const ScheduleInput& in, std::string_view schedule, double memory) {
  Problem problem{{}, in.plan.micro_batches(StageId{0}), slowest_hop(in).value, memory * 2 * in.layout.ranks()};
  for (const auto& chunks : rank_costs(in)) problem.ranks.push_back(chunks.front());
  const auto best = best_trial(problem);
  if (!best)
    throw Infeasible("memory",
                     fmt::format("the schedule '{}' cannot run in {:g} times {} activations on each rank", schedule,
                                 memory, in.layout.ranks()),
                     "a larger run.schedule.memory; 1 is always enough");
  return by_rank(in, problem.micro_batches, [&](const RankInput& r, RankOps& ops) {
    constexpr OpKind kinds[] = {OpKind::Forward, OpKind::InputGradient, OpKind::WeightGradient};
    int count[3] = {0, 0, 0};
    for (const Kind kind : best->row(r.rank)) ops.add(kinds[kind], 0, count[kind]++);
  });
}

}  // namespace stagecraft
