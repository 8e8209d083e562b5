// The search for an order: its clock and its promises, compared with every order.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/schedule/synthesis/list_scheduler.hpp"
#include "sim/schedule/synthesis/lower_bound.hpp"
#include "sim/schedule/synthesis/order_clock.hpp"
#include "sim/schedule/synthesis/search.hpp"
#include "sim/schedule/synthesis/seeds.hpp"
#include "sim/schedule/validate.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/synthesis.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::synthesis_test {
using namespace stagecraft::synthesis;
using test::at_most;
using test::halves;

namespace {

/// Random whole numbers, so that sums in any order are exact.
StageCosts random_costs(const Plan& plan, Rng& rng) {
  StageCosts costs;
  for (int s = 0; s < plan.stage_count(); ++s)
    costs.add({halves(rng.integer(1, 9), rng.integer(1, 9), rng.integer(1, 9))});
  return costs;
}

/// Every row of a rank with one stage: F, I and W of each micro-batch in this order.
void all_rows(std::vector<Step>& row, std::vector<int>& done, std::vector<std::vector<Step>>& rows, int first_piece) {
  bool any = false;
  for (std::size_t m = 0; m < done.size(); ++m) {
    if (done[m] == 3) continue;
    any = true;
    constexpr Kind kKinds[] = {kForward, kInputGradient, kWeightGradient};
    row.emplace_back(kKinds[done[m]++], first_piece + static_cast<int>(m));
    all_rows(row, done, rows, first_piece);
    row.pop_back();
    --done[m];
  }
  if (!any) rows.push_back(row);
}

struct Best {
  double makespan = kInfinity, period = makespan;
};

/// The smallest makespan and the smallest period of all orders that fit.
Best best_of_all(const SchedulingProblem& p, const ResourceLimits& limit) {
  std::vector<std::vector<std::vector<Step>>> choices;
  for (int r = 0; r < p.ranks(); ++r) {
    const int s = p.stages[StageId{r}.value].front();
    std::vector<Step> row;
    std::vector<int> done(static_cast<std::size_t>(p.micros[s]), 0);
    all_rows(row, done, choices.emplace_back(), p.first_piece[s]);
  }
  OrderClock clock(p);
  Best best;
  Rows rows(choices.size());
  const auto walk = [&](const auto& self, std::size_t r) -> void {
    if (r == choices.size()) {
      if (!fits(p, rows, limit)) return;
      const Score score = clock.score(rows, true);
      best.makespan = std::min(best.makespan, score.makespan);
      best.period = std::min(best.period, score.period);
      return;
    }
    for (const auto& row : choices[r]) rows[r] = row, self(self, r + 1);
  };
  walk(walk, 0);
  return best;
}

double searched(const SchedulingProblem& p, const ResourceLimits& limit, bool period) {
  const SearchGoal goal{.period = period, .effort = 1e6};
  const auto result = search(p, limit, goal, {}, lower_bound(p, limit));
  REQUIRE(!result.empty());
  CHECK(well_formed(p, result.front().rows));
  CHECK(fits(p, result.front().rows, limit));
  return period ? result.front().score.period : result.front().score.makespan;
}

/// One iteration of the schedule with these options, made without a scenario.
Schedule synthesised(const Plan& plan, const StageCosts& costs, const std::string& options) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "synthesised");
  const config::Value map = test::checked(options, *def.fields);
  return build_schedule(def, {.plan = plan, .costs = costs, .options = read_options(def, &map)});
}

}  // namespace

TEST_CASE("1F1B has the makespan, period and critical path computed by hand") {
  // Rank 0: F0 0-1, F1 1-2, B0 4-6 after B0 of rank 1, B1 7-9; rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7.
  const Plan plan = chain_plan(2, 2, 2);
  const StageCosts costs = uniform_costs(plan, test::times(1, 2));
  const SchedulingProblem p({.plan = plan, .costs = costs});
  const Rows rows = p.rows_of(test::build("1f1b", plan));
  OrderClock clock(p);
  const Score score = clock.score(rows, true);
  CHECK(score.makespan == 9);
  CHECK(score.period == 9);
  clock.score(rows, false);
  std::vector<std::string> path;
  const Schedule order = p.schedule_of(rows);
  for (const StepPosition& at : clock.critical_path(rows))
    path.push_back(to_text(order.row(DeviceId{at.rank})[at.index]));
  CHECK(path == std::vector<std::string>{"0B1", "1B1", "1F1", "1B0", "1F0", "0F0"});
}

TEST_CASE("1F1B with tied weights: both updates wait for the exchange after the last gradient of all") {
  // The last gradient ends at 9, 40 bytes go either way at 10 a second, rank 0 updates 13-14, rank 1 13-15. Rank 1 can
  // begin again at 15, when rank 0 has sent its first forward 14-15: the next iteration is 14 later throughout.
  Plan plan = chain_plan(2, 2, 2);
  test::tie_stages(plan, {{{0, 1}, 40}});
  StageCosts costs = uniform_costs(plan, test::times(1, 2));
  costs.at(StageId{0}, 0).update = Seconds{1}, costs.at(StageId{1}, 0).update = Seconds{2};
  const Cluster cluster = test::star(2, 10, 0, Duplex::Unshared);
  const SchedulingProblem p({.plan = plan, .costs = costs, .cluster = &cluster});
  const Rows rows = p.rows_of(test::build("1f1b", plan));
  OrderClock clock(p);
  CHECK(clock.score(rows, true).makespan == 15);
  CHECK(clock.score(rows, true).period == 14);
  clock.score(rows, false);
  const std::vector<StepPosition> path = clock.critical_path(rows);
  CHECK(path.size() == 6);
  CHECK(path.front().rank == 0);  // Its last backward, though rank 1 ends last.
  CHECK(path.front().index == 3);
  // No order is shorter: rank 1 begins at 1 and works for 6; the last backward of rank 0 and the exchange follow.
  const LowerBound bound = lower_bound(p, at_most(p, 2), false);
  CHECK(bound.makespan == 15);
  CHECK(bound.period == 14);
}

TEST_CASE("an order that deadlocks has an infinite time; a schedule converts to rows and back unchanged") {
  const Plan plan = chain_plan(2, 2, 2);
  const StageCosts costs = uniform_costs(plan, test::times(1, 2));
  const SchedulingProblem p({.plan = plan, .costs = costs});
  Rows rows = p.rows_of(test::build("1f1b", plan));
  CHECK(p.rows_of(p.schedule_of(rows)) == rows);
  CHECK(well_formed(p, rows));
  std::swap(rows[1][1], rows[1][2]);  // F1 in front of B0 is another good order, ...
  CHECK(well_formed(p, rows));
  CHECK(std::isfinite(OrderClock(p).score(rows, true).makespan));
  rows[0] = {{kForward, 0}, {kBackward, 0}, {kForward, 1}, {kBackward, 1}};  // ... but not together with this one.
  CHECK(OrderClock(p).score(rows, true).makespan == kInfinity);
  rows[0][3] = rows[0][2];
  CHECK(!well_formed(p, rows));
}

namespace {

struct SearchTotals {
  int period = 0, makespan = 0, cases = 0;
};

/// The search against all orders, on plans of two or three ranks; with `tied`, the outer ones share weights.
SearchTotals against_all_orders(bool tied) {
  Rng rng(7, "all orders");
  SearchTotals met;
  for (int i = 0; i < 12; ++i) {
    const int ranks = i % 2 == 0 ? 3 : 2;
    Plan plan = chain_plan(ranks, ranks, 2);
    const StageCosts costs = random_costs(plan, rng);
    if (tied) test::tie_stages(plan, {{{0, ranks - 1}, double(rng.integer(0, 12))}});
    const Cluster cluster = test::star(ranks, 1, 0, Duplex::Unshared);
    const SchedulingProblem p({.plan = plan, .costs = costs, .cluster = &cluster});
    for (const double max_alive : {1.0, 2.0}) {
      CAPTURE(i);
      CAPTURE(max_alive);
      const ResourceLimits limit = at_most(p, max_alive);
      const Best best = best_of_all(p, limit);
      const LowerBound bound = lower_bound(p, limit);
      CHECK(bound.period <= best.period * (1 + 1e-9));
      CHECK(bound.makespan <= best.makespan * (1 + 1e-9));
      CHECK(searched(p, limit, true) == doctest::Approx(best.period).epsilon(1e-12));
      CHECK(searched(p, limit, false) == doctest::Approx(best.makespan).epsilon(1e-12));
      met.period += bound.period >= best.period * (1 - 1e-9);
      met.makespan += bound.makespan >= best.makespan * (1 - 1e-9);
      ++met.cases;
    }
  }
  MESSAGE("the bound is the best in ", met.period, " (period) and ", met.makespan, " (makespan) of ", met.cases);
  return met;
}

}  // namespace

TEST_CASE("on small plans the search finds the best of all orders, and the bound is not above it") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    const SearchTotals met = against_all_orders(tied);
    CHECK(met.period > met.cases / 4);
    CHECK(met.makespan > met.cases / 4);
  }
}

TEST_CASE("list schedules of any genes are complete orders within the memory") {
  Rng rng(3, "genes");
  const Plan plans[] = {chain_plan(4, 4, 6), placed_plan(Placement::V, 3, 2, 5), placed_plan(Placement::Loop, 3, 3, 4),
                        test::dag_plan(4, 5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}})};
  for (const Plan& plan : plans)
    for (int i = 0; i < 60; ++i) {
      const StageCosts costs = random_costs(plan, rng);
      const SchedulingProblem p({.plan = plan, .costs = costs});
      ListRules g;
      g.whole = rng.integer(0, 1) == 1;
      for (int piece = 0; piece < p.pieces(); ++piece) {
        g.ahead.push_back(rng.integer(1, 6));
        for (auto* list : {&g.forward, &g.gradient, &g.weight}) list->push_back(rng.uniform(-9, 9));
      }
      g.patience = rng.uniform(0, 1.5), g.courtesy = rng.uniform(0, 1.5);
      const int chunks = plan.stage_count() / p.ranks();
      const ResourceLimits limit = at_most(p, rng.integer(chunks, 3 * chunks));
      const Rows rows = list_schedule(p, limit, g);
      CHECK(well_formed(p, rows));
      CHECK(fits(p, rows, limit));
      CHECK(std::isfinite(OrderClock(p).score(rows, true).period));
    }
}

// v_auto_schedule.py of sail-sg prints the bubble it finds with room for a activations and the one it expects:
// 3 p - 1 - 3 a + max(3 p, p - 1 + 2 (1 + ceil(a / 2))) steps. Fewer than V-Min keeps (2 floor((p + 4) / 3)) are not
// asked for.
TEST_CASE("a V schedule in little memory is no longer than the search for building blocks expects") {
  const auto expected = [](int p, int a) {
    return std::max(0, 3 * p - 1 - 3 * a + std::max(3 * p, p - 1 + 2 * (1 + (a + 1) / 2)));
  };
  CHECK(6 * 16 + expected(8, 13) == 104);
  const std::vector<int> sizes = test::all_trials() ? std::vector{4, 6, 8} : std::vector{4, 6};
  for (const int ranks : sizes)
    for (int max_alive = 2 * ((ranks + 4) / 3); max_alive <= 2 * ranks; ++max_alive) {
      CAPTURE(ranks);
      CAPTURE(max_alive);
      const int micro_batches = 2 * ranks;
      const Plan plan = placed_plan(Placement::V, ranks, 2, micro_batches);
      const Schedule s = synthesised(plan, uniform_costs(plan, halves(1, 1, 1)),
                                     "{activations: " + std::to_string(max_alive) + ", effort: 3}");
      REQUIRE(s.search.has_value());
      CHECK(s.search->time.value <= 6.0 * micro_batches + expected(ranks, max_alive) + 1e-9);
      CHECK(s.search->bound.value >= 6.0 * micro_batches - 1e-9);
    }
}

TEST_CASE("a V schedule in little memory is as short as the published ones from building blocks") {
  struct Point {
    int ranks, micro_batches, activations;
    double period;
  };
  for (const Point& at : {Point{4, 12, 4, 83}, Point{4, 12, 6, 77}, Point{4, 12, 8, 72}, Point{8, 16, 10, 113},
                          Point{8, 16, 13, 104}, Point{8, 24, 8, 167}}) {
    CAPTURE(at.ranks);
    CAPTURE(at.activations);
    const Plan plan = placed_plan(Placement::V, at.ranks, 2, at.micro_batches);
    const Schedule s = synthesised(plan, uniform_costs(plan, halves(1, 1, 1)),
                                   "{activations: " + std::to_string(at.activations) + ", effort: 5}");
    REQUIRE(s.search.has_value());
    CHECK(s.search->time.value <= at.period + 1e-9);
    CHECK(s.search->bound.value >= 6.0 * at.micro_batches - 1e-9);
  }
}

TEST_CASE("bidirectional orders are valid, and none is longer than the catalog's") {
  struct Point {
    int ranks, micro_batches, catalog_orders;
  };
  // Chimera and DualPipe want an even number of ranks; GEMS divides the micro-batches in another way.
  for (const Point& at : {Point{2, 4, 2}, Point{4, 8, 2}, Point{3, 5, 0}}) {
    CAPTURE(at.ranks);
    const Plan plan = placed_plan(Placement::Bidirectional, at.ranks, 2, at.micro_batches);
    const StageCosts costs = uniform_costs(plan, halves(2, 2, 1));
    const Schedule s = synthesised(plan, costs, "{placement: bidirectional, effort: 2}");
    for (const ScheduleProblem& problem : validate(s, plan, {})) FAIL_CHECK(to_text(problem));
    REQUIRE(s.search.has_value());
    CHECK(s.search->bound.value >= 5.0 * at.micro_batches - 1e-9);  // Half of them run on each of two stages.
    CHECK(s.search->time.value >= s.search->bound.value - 1e-9);
    const SchedulingProblem p({.plan = plan, .costs = costs});
    int catalog_orders = 0;
    for (const SeedOrder& seed : library_seeds({.plan = plan, .costs = costs})) {
      CAPTURE(seed.name);
      CHECK(s.search->time.value <= OrderClock(p).score(p.rows_of(seed.iteration), true).period + 1e-9);
      ++catalog_orders;
    }
    CHECK(catalog_orders == at.catalog_orders);
  }
}

TEST_CASE("the same seed finds the same order; another effort may find another") {
  Rng rng(11, "seeds");
  const Plan plan = chain_plan(4, 4, 8);
  const StageCosts costs = random_costs(plan, rng);
  const std::string options = "{activations: 4, effort: 2, seed: 5}";
  CHECK(synthesised(plan, costs, options) == synthesised(plan, costs, options));
}

TEST_CASE("whole backwards are used alone if asked for") {
  Rng rng(13, "whole");
  const Plan plan = chain_plan(3, 3, 6);
  const StageCosts costs = random_costs(plan, rng);
  for (const auto& row : synthesised(plan, costs, "{split: false, effort: 1}").ranks)
    for (const Op& op : row) CHECK((op.kind != OpKind::InputGradient && op.kind != OpKind::WeightGradient));
}

TEST_CASE("a memory limit that no order meets is refused") {
  const Plan plan = placed_plan(Placement::V, 3, 2, 4);
  const StageCosts costs = uniform_costs(plan, halves(1, 1, 1));
  CHECK_THROWS_AS(synthesised(plan, costs, "{activations: 1, effort: 1}"), Infeasible);
  CHECK(synthesised(plan, costs, "{activations: 2, effort: 1}").search->time.value > 0);
}

TEST_CASE("a graph of stages may have different micro-batches and recompute") {
  Plan plan = test::dag_plan(4, 4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  plan.mini_batch = 8;
  for (Stage& s : plan.stages) s.micro_batch_size = 2;
  plan.stages[StageId{1}].micro_batch_size = 4;
  plan.stages[StageId{2}].shape.recomputation = Recomputation::Full;
  Rng rng(17, "graphs");
  const StageCosts costs = random_costs(plan, rng);
  const Schedule s = synthesised(plan, costs, "{effort: 1}");
  for (const ScheduleProblem& problem : validate(s, plan, {})) FAIL_CHECK(to_text(problem));
}

}  // namespace stagecraft::synthesis_test
