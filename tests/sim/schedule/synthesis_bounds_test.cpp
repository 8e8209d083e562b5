// Lower bounds of all orders: compared with every order of small plans, and with the known bounds of uniform ones.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/core/random.hpp"
#include "sim/schedule/synthesis/lower_bound.hpp"
#include "sim/schedule/synthesis/order_clock.hpp"
#include "tests/support/road.hpp"
#include "tests/support/synthesis.hpp"

namespace stagecraft::synthesis_bounds_test {
using namespace stagecraft::synthesis;
using test::at_most;
using test::halves;

namespace {

/// Every row of a rank whose stages follow each other, forward and then backward; with `named`, only one of the rows
/// that differ in the numbering of the micro-batches alone.
class RowsOfRank {
 public:
  RowsOfRank(const SchedulingProblem& p, int rank, bool split, bool named)
      : p_(p), stages_(p.stages[StageId{rank}.value]), split_(split), named_(named) {
    std::sort(stages_.begin(), stages_.end());
    micros_ = p.micros[stages_.front()];
    done_.assign(stages_.size(), std::vector<int>(micros_, 0));
    add();
  }
  std::vector<std::vector<Step>> orders;

 private:
  void add() {
    if (row_.size() == stages_.size() * micros_ * (split_ ? 3 : 2)) orders.push_back(row_);
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (std::size_t m = 0; m < micros_; ++m)
        if (may(s, m)) step(s, m);
  }
  bool may(std::size_t s, std::size_t m) const {
    if (done_[s][m] == 0) return s > 0 ? done_[s - 1][m] > 0 : !named_ || m == 0 || done_[s][m - 1] > 0;
    if (done_[s][m] == 1) return s + 1 == stages_.size() || done_[s + 1][m] > 1;
    return done_[s][m] == 2 && split_;
  }
  void step(std::size_t s, std::size_t m) {
    constexpr Kind kHalves[] = {kForward, kInputGradient, kWeightGradient};
    const Kind kind = !split_ && done_[s][m] == 1 ? kBackward : kHalves[done_[s][m]];
    row_.emplace_back(kind, p_.first_piece[stages_[s]] + static_cast<int>(m));
    ++done_[s][m];
    add();
    --done_[s][m];
    row_.pop_back();
  }

  const SchedulingProblem& p_;
  std::vector<int> stages_;
  bool split_, named_;
  std::size_t micros_ = 0;
  std::vector<std::vector<int>> done_;
  std::vector<Step> row_;
};

/// The smallest makespan and the smallest period of all orders that fit.
Score best_of_all(const SchedulingProblem& p, const ResourceLimits& limit, bool split) {
  std::vector<std::vector<std::vector<Step>>> choices;
  for (int r = 0; r < p.ranks(); ++r) {
    choices.push_back(RowsOfRank(p, r, split, r == 0).orders);
    std::erase_if(choices.back(), [&](const std::vector<Step>& row) { return !row_fits(p, row, r, limit); });
  }
  OrderClock clock(p);
  Score best;
  Rows rows(choices.size());
  const std::function<void(std::size_t)> walk = [&](std::size_t r) {
    if (r == choices.size()) {
      const Score score = clock.score(rows, true);
      best.makespan = std::min(best.makespan, score.makespan);
      best.period = std::min(best.period, score.period);
      return;
    }
    for (const auto& row : choices[r]) rows[r] = row, walk(r + 1);
  };
  walk(0);
  return best;
}

struct Shape {
  Placement placement;
  int ranks, chunks, micro_batches;
  bool split;
  Plan plan() const {
    return chunks == 1 ? chain_plan(ranks, ranks, micro_batches) : placed_plan(placement, ranks, chunks, micro_batches);
  }
};

/// Random whole numbers, so that sums in any order are exact.
StageCosts random_costs(const Plan& plan, Rng& rng) {
  StageCosts costs;
  for (int s = 0; s < plan.stage_count(); ++s)
    costs.add({halves(rng.integer(1, 9), rng.integer(1, 9), rng.integer(0, 9))});
  return costs;
}

LowerBound bound_of(int ranks, int micro_batches, const StageCost& cost, double hop, double max_alive, bool split) {
  const Plan plan = chain_plan(ranks, ranks, micro_batches);
  const StageCosts costs = uniform_costs(plan, cost);
  const Cluster cluster = test::delay_cluster(ranks, hop);
  const SchedulingProblem p({.plan = plan, .costs = costs, .cluster = &cluster});
  return lower_bound(p, at_most(p, max_alive), split);
}

}  // namespace

TEST_CASE("the bound is never above any order of 280 small plans, and is tight for nine of ten") {
  const Shape shapes[] = {{Placement::Linear, 3, 1, 2, true}, {Placement::Linear, 3, 1, 3, false},
                          {Placement::V, 2, 2, 2, false},     {Placement::Loop, 2, 2, 2, false},
                          {Placement::Linear, 3, 1, 1, true}, {Placement::V, 3, 2, 1, false},
                          {Placement::Linear, 2, 1, 2, true}};
  Rng rng(2, "bounds");
  int cases = 0, periods = 0, makespans = 0;
  for (int i = 0; i < 280; ++i) {
    const Shape& shape = shapes[i % 7];
    const Plan plan = shape.plan();
    const StageCosts costs = random_costs(plan, rng);
    const Cluster cluster = test::delay_cluster(shape.ranks, rng.integer(0, 1) * rng.integer(0, 6));
    const SchedulingProblem p({.plan = plan, .costs = costs, .cluster = &cluster});
    const double capacity = shape.chunks * rng.integer(1, shape.micro_batches) + 0.5 * rng.integer(0, 2);
    const ResourceLimits limit =
        at_most(p, rng.integer(0, 3) > 0 ? capacity : 100, shape.split && i % 2 == 0 ? 0.5 : 0);
    const Score best = best_of_all(p, limit, shape.split);
    REQUIRE(std::isfinite(best.period));
    const LowerBound bound = lower_bound(p, limit, shape.split);
    CAPTURE(i);
    CHECK(bound.period <= best.period * (1 + 1e-9));
    CHECK(bound.makespan <= best.makespan * (1 + 1e-9));
    ++cases;
    periods += bound.period >= best.period * (1 - 1e-9);
    makespans += bound.makespan >= best.makespan * (1 - 1e-9);
  }
  MESSAGE("the best of all orders in ", periods, " (period) and ", makespans, " (makespan) of ", cases);
  CHECK(10 * periods >= 9 * cases);
  CHECK(10 * makespans >= 9 * cases);
}

TEST_CASE("whole backwards: the period has the fill, the work of the last rank and the drain") {
  // (p-1)(F+c) + m(F+B) + (p-1)(B+c), whatever the memory; 1F1B takes as long where messages take no time.
  for (const int p : {2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p})
      for (const double c : {0.0, 0.25}) {
        CAPTURE(p);
        CAPTURE(m);
        CHECK(bound_of(p, m, halves(1, 1, 1), c, 1e9, false).period == (p - 1) * (1 + c) + m * 3 + (p - 1) * (2 + c));
      }
  CHECK(bound_of(4, 8, halves(1, 1, 1), 0, 4, false).period == 33);
  // The formula also holds for split backwards where W takes no time that the drain could hide.
  CHECK(bound_of(3, 5, halves(1, 1, 0), 0, 5, true).period == 14);
}

TEST_CASE("halves in the memory of 1F1B: the first rank waits (p-1)(I+2c) for its first gradient, as ZB-H1 does") {
  // Qi et al., Zero Bubble Pipeline Parallelism, appendix B: with room for k, (p-1)(T_B+2c) + (p-k)T_F or more.
  for (const int p : {2, 4, 8})
    for (const double c : {0.0, 0.25}) {
      CAPTURE(p);
      const int m = 3 * p;
      CHECK(bound_of(p, m, halves(1, 1, 1), c, p, true).period >= 3 * m + (p - 1) * (1 + 2 * c));
    }
  const Plan plan = chain_plan(4, 4, 8);
  const StageCosts costs = uniform_costs(plan, halves(1, 1, 1));
  const SchedulingProblem p({.plan = plan, .costs = costs});
  const Rows rows = p.rows_of(test::build("zb-h1", plan));
  CHECK(fits(p, rows, at_most(p, 4)));
  CHECK(OrderClock(p).score(rows, true).period == 27);
  CHECK(bound_of(4, 8, halves(1, 1, 1), 0, 4, true).period == 27);
}

TEST_CASE("room for one and a half activations is room for one: micro-batches run one after the other") {
  // Four forwards, four input gradients, and W before the next micro-batch enters.
  CHECK(bound_of(4, 8, halves(1, 1, 1), 0, 1, true).period == 8 * 9);
  CHECK(bound_of(4, 8, halves(1, 1, 1), 0, 1.5, true).period == 8 * 9);
  CHECK(bound_of(4, 8, halves(1, 1, 1), 0, 1.5, true).makespan == 8 * 9);
  // Where I gives back half, one and a half is a whole one and a W that is put off.
  const Plan plan = chain_plan(4, 4, 8);
  const StageCosts costs = uniform_costs(plan, halves(1, 1, 1));
  const SchedulingProblem p({.plan = plan, .costs = costs});
  const auto halved = [&](double capacity) { return lower_bound(p, at_most(p, capacity, 0.5), true).period; };
  CHECK(halved(1.25) == halved(1));
  CHECK(halved(1.5) < halved(1));
}

}  // namespace stagecraft::synthesis_bounds_test
