// Graph pipelines: the theorem on unit costs, the minimal number in flight of each stage, and the gain of parallel over
// sequential branches (GraphPipe, ASPLOS 2025).

#include <doctest/doctest.h>

#include "sim/result/report.hpp"
#include "sim/schedule/in_flight.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::graph_forms_test {
namespace {

double makespan(const Schedule& schedule, const Plan& plan, const StageCosts& costs) {
  const Program program = test::lowered(schedule, plan, costs, test::pure_delays());
  const Cluster cluster = test::delay_cluster(program.devices, 0);
  return measure(program, test::run_ideal(program, cluster), cluster).makespan.value;
}

double unit_makespan(const Schedule& schedule, const Plan& plan) {
  return makespan(schedule, plan, uniform_costs(plan, test::times(1, 1)));
}

Plan random_dag(test::Draw& draw, int micro_batches_a_depth) {
  const int stages = draw(1, 9);
  Plan plan = chain_plan(stages, stages, 1);
  plan.edges.clear();
  test::random_edges(plan, draw);
  const auto depths = depth_to_sink(plan.graph());
  plan.mini_batch = micro_batches_a_depth * *std::max_element(depths.begin(), depths.end()) + draw(0, 3);
  return plan;
}

int depth_of(const Plan& plan) {
  const auto depths = depth_to_sink(plan.graph());
  return *std::max_element(depths.begin(), depths.end());
}

/// `branches` chains of `length` stages, joined at the end by a stage that takes no time.
Plan branches(int count, int length, int micro_batches) {
  Plan plan = chain_plan(count * length + 1, count * length + 1, micro_batches);
  plan.edges.clear();
  const StageId join{count * length};
  for (int b = 0; b < count; ++b)
    for (int s = 0; s < length; ++s) {
      const int stage = b * length + s;
      plan.edges.push_back({StageId{stage}, s + 1 < length ? StageId{stage + 1} : join, {}});
    }
  return plan;
}

}  // namespace

TEST_CASE("random DAGs at unit costs have min(depth, m) in flight and take 2(m + D - 1)") {
  test::Draw draw{Rng(31, "graphs")};
  for (int trial = 0; trial < 300; ++trial) {
    const Plan plan = random_dag(draw, draw(1, 3));
    CAPTURE(to_text(plan));
    const auto depths = depth_to_sink(plan.graph());
    const auto samples = in_flight_samples(plan);
    for (const StageId s : samples.ids()) CHECK(samples[s] == std::min(depths[s.value], plan.mini_batch));
    CHECK(unit_makespan(test::build("graph", plan), plan) == 2 * (plan.mini_batch + depth_of(plan) - 1));
  }
}

TEST_CASE("one less in flight on any stage costs time, one more gains none") {
  test::Draw draw{Rng(32, "minimal")};
  int reduced = 0;
  for (int trial = 0; trial < 80; ++trial) {
    const Plan plan = random_dag(draw, 2);
    CAPTURE(to_text(plan));
    const auto depths = depth_to_sink(plan.graph());
    const double best = 2 * (plan.mini_batch + depth_of(plan) - 1);
    const auto with = [&](int changed, int by) {
      return complete(by_stage(plan, "changed", DeviceSharing::Refused,
                               [&](StageId s, OpList& ops) {
                                 const int depth = depths[s.value];
                                 alternate(plan.mini_batch, depth + (s.value == changed ? by : 0), 1, ops);
                               }),
                      plan, 1);
    };
    for (int s = 0; s < plan.stage_count(); ++s) {
      CAPTURE(s);
      CHECK(unit_makespan(with(s, +1), plan) >= best);
      if (depths[s] < 2) continue;  // a sink needs its one
      const Schedule less = with(s, -1);
      CHECK((!validate(less, plan, {}).empty() || unit_makespan(less, plan) > best));
      ++reduced;
    }
  }
  CHECK(reduced > 100);
}

TEST_CASE("equal branches take (m + qp - 1) / (m + p - 1) times as long in sequence as in parallel") {
  // With an ordinary join the depths would be p + 1 and qp + 1. The formula counts the stages of the branches alone, so
  // the join takes no time here: it orders the branches' ends and adds nothing to either pipeline.
  for (const int q : {2, 3, 4})
    for (const int p : {1, 2, 4})
      for (const int m : {4, 8, 32})
        for (const double backward : {1.0, 2.0}) {
          CAPTURE(q);
          CAPTURE(p);
          CAPTURE(m);
          const Plan graph = branches(q, p, m);
          Plan sequence = graph;
          make_sequential(sequence);
          CHECK(depth_of(graph) == p + 1);
          CHECK(depth_of(sequence) == q * p + 1);
          StageCosts costs = uniform_costs(graph, test::times(1, backward));
          costs.at(StageId{costs.stages() - 1}, 0) = test::times(0, 0);
          const double side_by_side = makespan(test::build("graph", graph), graph, costs);
          const double in_a_row = makespan(test::build("graph", sequence), sequence, costs);
          CHECK(side_by_side == (m + p - 1) * (1 + backward));
          CHECK(in_a_row == (m + q * p - 1) * (1 + backward));
        }
}

TEST_CASE("equal branches in parallel also keep less alive") {
  const Plan graph = branches(2, 4, 32);
  Plan sequence = graph;
  make_sequential(sequence);
  CHECK(in_flight_samples(graph) == IdVector<StageId, int>{5, 4, 3, 2, 5, 4, 3, 2, 1});
  CHECK(in_flight_samples(sequence) == IdVector<StageId, int>{9, 8, 7, 6, 5, 4, 3, 2, 1});
}

TEST_CASE("before small micro-batches, one less large one in flight starves them, one more gains nothing") {
  Plan plan = chain_plan(4, 4, 64);
  plan.stages[StageId{0}].micro_batch_size = 4;
  const auto samples = in_flight_samples(plan);
  StageCosts costs = uniform_costs(plan, test::times(1, 1));
  costs.at(StageId{0}, 0) = test::times(4, 4);
  const auto length = [&](int more) {
    const auto order = [&](StageId s, OpList& ops) {
      const int ahead = samples[s] / plan.stage(s).micro_batch_size + (s.value == 0 ? more : 0);
      alternate(plan.micro_batches(s), ahead, 1, ops);
    };
    return makespan(complete(by_stage(plan, "ahead", DeviceSharing::Refused, order), plan, 1), plan, costs);
  };
  CHECK(length(-1) > length(0));
  CHECK(length(+1) == length(0));
}

TEST_CASE("nested sizes and groups never deadlock, and unequal costs stay within the bounds") {
  test::Draw draw{Rng(33, "mixed")};
  for (int trial = 0; trial < 200; ++trial) {
    test::RandomCase c = test::random_case(draw, 7);
    if (c.schedule != "graph") continue;
    CAPTURE(to_text(c));
    const Schedule schedule = test::build("graph", c.plan);
    CHECK(validate(schedule, c.plan, {}).empty());
    const double length = makespan(schedule, c.plan, c.costs);
    double busiest = 0;
    for (const StageId s : c.plan.stages.ids())
      for (const StageCost& cost : c.costs.replicas(s)) {
        const bool again = c.plan.stages[s].shape.recomputes_all();
        const double once = (cost.forward + cost.backward + (again ? cost.recompute : Seconds{})).value;
        busiest = std::max(busiest, once * c.plan.micro_batches(s));
      }
    CHECK(length >= busiest * (1 - 1e-12));
  }
}

}  // namespace stagecraft::graph_forms_test
