// On machines with unequal devices, the search against every schedule of the catalog, all judged by the simulator.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/synthesis/order_clock.hpp"
#include "sim/schedule/synthesis/seeds.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::synthesis_test {
namespace {

struct Instance {
  Plan plan;
  StageCosts costs;
  Cluster cluster;
  int ranks = 0;
};

Instance any_instance(Rng& rng, const std::vector<Placement>& placements) {
  Instance i;
  i.ranks = rng.integer(2, 5);
  const int micro_batches = rng.integer(2, 10);
  const Placement placement = placements[rng.integer(0, static_cast<int>(placements.size()) - 1)];
  // GEMS sends single micro-batches either way in turn, the others halves; they want an even number of ranks.
  const int turn = placement != Placement::Bidirectional ? 0 : i.ranks % 2 == 1 ? 1 : rng.integer(0, 1);
  i.plan = placed_plan(placement, i.ranks, placement == Placement::Linear ? 1 : 2, micro_batches, turn);
  const bool recompute = rng.integer(0, 2) == 0;
  for (StageEdge& e : i.plan.edges) e.bytes = Bytes{static_cast<double>(rng.integer(0, 20000))};
  for (const StageId s : i.plan.stages.ids()) {
    StageCost c;
    c.forward = c.recompute = Seconds{rng.uniform(5, 20)};
    c.input_gradient = Seconds{rng.uniform(5, 20)};
    c.weight_gradient = Seconds{rng.uniform(3, 15)};
    c.backward = c.input_gradient + c.weight_gradient;
    const Bytes stash{static_cast<double>(rng.integer(50, 100))};
    c.memory.stash = std::min(stash, Bytes{static_cast<double>(rng.integer(5, 60))});
    c.memory.recompute_stash = stash - c.memory.stash;
    i.plan.stages[s].shape.recomputation = recompute ? Recomputation::Full : Recomputation::None;
    c.update = Seconds{rng.uniform(0, 2)};
    i.costs.add({c});
  }
  i.cluster = test::star(i.ranks, 1e4, rng.uniform(0, 0.5), Duplex::Unshared);  // A message takes up to two seconds.
  return i;
}

/// Adds one or two ties, each between random stages and their copies; one of the stages is the last.
void add_ties(Instance& i, Rng& rng) {
  const int last = i.plan.stage_count() - 1;
  std::vector<test::StageTie> ties;
  for (int t = rng.integer(1, 2); t > 0; --t) {
    test::StageTie tie{{}, static_cast<double>(rng.integer(0, 200000))};  // At 1e4 a second: up to 20 s between two.
    std::vector<bool> holds(i.plan.stages.size(), false);
    for (int s = 0; s <= last; ++s) {
      if (s < last && rng.integer(0, 1) == 0) continue;
      const StageId twin = i.plan.stage(StageId{s}).twin;
      holds[s] = true;
      if (twin.valid()) holds[twin.value] = true;
    }
    for (int s = 0; s <= last; ++s)
      if (holds[s]) tie.stages.push_back(s);
    if (tie.stages.size() > 1) ties.push_back(std::move(tie));
  }
  test::tie_stages(i.plan, ties);
}

LoweringOptions options() {
  LoweringOptions o;
  o.iterations = 6;
  o.rendezvous = false;
  o.streams = StreamModel::None;
  return o;
}

OrderResult played(const Instance& i, const Schedule& iteration) {
  const Program program = test::lowered(complete(iteration, i.plan, 6), i.plan, i.costs, options());
  const Timeline timeline = test::run_ideal(program, i.cluster);
  const Report report = measure(program, timeline, i.cluster);
  return {report.makespan, report.period, memory_needs(program)};
}

double fullest(const OrderResult& p) {
  double peak = 0;
  for (const Bytes b : p.memory) peak = std::max(peak, b.value);
  return peak;
}

struct Totals {
  int compared = 0, shorter = 0;
  double gain = 0, gap = 0, worst_gap = 0;
};

/// Compares the clock of the search with the simulator; orders with copies, recomputation or fused ops are skipped.
void check_clock(const Instance& i, const ScheduleInput& in, const Schedule& iteration) {
  if (i.plan.stages.front().twin.valid()) return;
  for (const auto& row : iteration.device_rows())
    for (const Op& op : row)
      if (op.kind == OpKind::Recompute || op.fused) return;
  const synthesis::SchedulingProblem problem(in);
  const synthesis::Score score = synthesis::OrderClock(problem).score(problem.rows_of(iteration), true);
  CHECK(score.makespan == doctest::Approx(played(i, iteration).makespan.value).epsilon(1e-9));
}

/// Compares the search with all known schedules that fit in the memory of one of them.
void compare_with_known(Instance& i, int n, Rng& rng, Totals& totals) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "synthesised");
  const bool period = n % 3 != 0;
  const StageCosts& costs = i.costs;
  const ScheduleInput in{.plan = i.plan, .costs = costs, .cluster = &i.cluster};
  std::vector<std::pair<std::string, OrderResult>> seeds;
  for (const auto& seed : synthesis::library_seeds(in))
    if (seed.as_known) check_clock(i, in, seed.iteration), seeds.emplace_back(seed.name, played(i, seed.iteration));
  REQUIRE(!seeds.empty());
  const double memory = fullest(seeds[rng.integer(0, static_cast<int>(seeds.size()) - 1)].second);
  i.cluster.types.front().memory = Bytes{memory};
  const config::Value map = test::checked(std::string("{effort: 2, objective: ") + (period ? "period" : "makespan") +
                                              (n % 4 == 1 ? ", activations: 1000}" : "}"),
                                          *def.fields);
  ScheduleInput ours = in;
  ours.options = read_options(def, &map);
  ours.simulate = [&](const Schedule& one) { return std::optional(played(i, one)); };
  const Schedule synthesised = build_schedule(def, ours);
  const OrderResult best = played(i, synthesised);
  CHECK(fullest(best) <= memory * (1 + 1e-12));
  const auto time = [&](const OrderResult& p) { return period ? p.period.value : p.makespan.value; };
  CHECK(time(best) == doctest::Approx(synthesised.search->time.value).epsilon(1e-9));
  CHECK(synthesised.search->bound.value <= time(best) * (1 + 1e-9));
  double shortest = kInfinity;
  for (const auto& other : seeds) {
    if (fullest(other.second) > memory * (1 + 1e-12)) continue;
    CAPTURE(other.first);
    CHECK(time(best) <= time(other.second) * (1 + 1e-9));
    shortest = std::min(shortest, time(other.second));
    ++totals.compared;
  }
  totals.shorter += time(best) < shortest * (1 - 1e-9);
  totals.gain += shortest / time(best) - 1;
  totals.gap += synthesised.search->gap();
  totals.worst_gap = std::max(totals.worst_gap, synthesised.search->gap());
}

Totals on_machines(int count, Rng& rng, const std::vector<Placement>& placements, bool tied = false) {
  Totals t;
  for (int n = 0; n < count; ++n) {
    CAPTURE(n);
    Instance i = any_instance(rng, placements);
    if (tied) add_ties(i, rng);
    compare_with_known(i, n, rng, t);
  }
  MESSAGE(t.compared, " comparisons; shorter than all known ones on ", t.shorter, " of ", count, " machines, by ",
          100 * t.gain / count, " % on average; ", 100 * t.gap / count, " % above the bound on average, at most ",
          100 * t.worst_gap, " %");
  return t;
}

}  // namespace

TEST_CASE("on random machines no known schedule is shorter than the synthesised one in the same memory") {
  Rng rng(2026, "machines");
  const int machines = test::trials(90);
  CHECK(on_machines(machines, rng, {Placement::Linear, Placement::Loop, Placement::V}).shorter > machines / 2);
}

TEST_CASE("on random machines no known bidirectional schedule is shorter than the synthesised one") {
  Rng rng(2027, "both ways");
  const int machines = test::trials(30);
  CHECK(on_machines(machines, rng, {Placement::Bidirectional}).shorter > machines / 2);
}

TEST_CASE("on random machines with tied weights no known schedule is shorter than the synthesised one") {
  Rng rng(2028, "ties");
  const int machines = test::trials(40);
  CHECK(on_machines(machines, rng, {Placement::Linear, Placement::Loop, Placement::V}, true).shorter >= machines / 4);
  CHECK(on_machines(machines / 2, rng, {Placement::Bidirectional}, true).shorter >= machines / 4);
}

}  // namespace stagecraft::synthesis_test
