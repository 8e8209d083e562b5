// Bidirectional pipelines from a scenario: the closed forms of the papers, and the cost of the second copy.

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/experiment/run.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/builder.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::both_ways_test {
namespace {

/// Times of one layer on one micro-batch, in seconds; dyadic, so that sums are exact.
struct Times {
  double forward, input, weight;
};

/// A layer for each of p stages; messages and all-reduces have no bytes, unless there are parameters.
Experiment scenario(std::string_view schedule, int p, int micro_batches, Times t,
                    const std::vector<std::string>& sets = {}) {
  const std::string file =
      test::own_file("both_ways_test.yaml",
                     fmt::format("schema: scenario/2\n"
                                 "software: none\n"
                                 "model: {{builder: uniform, layers: {}, forward: {} s, input_gradient: {} s, "
                                 "weight_gradient: {} s, stash: 1 MiB}}\n"
                                 "cluster: {{generator: uniform, devices: {}, type: any, link: {{bandwidth: 4 GB/s}},\n"
                                 "  types: {{any: {{peak: 1 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1 TB/s}}}}}}\n"
                                 "plan: {{planner: balanced, stages: {}}}\n"
                                 "run: {{schedule: {}, micro_batches: {}, iterations: 1}}\n",
                                 p, t.forward, t.input, t.weight, p, p, schedule, micro_batches));
  return load_experiment(file, sets);
}

/// The makespan of this order on a plan without a model.
double without_model(std::string_view schedule, int p, int micro_batches, Times t) {
  const Plan plan = plan_for(get_from(schedules::catalog(), "schedule", schedule), p, 2, micro_batches);
  StageCost cost = test::times(t.forward, t.input + t.weight);
  cost.input_gradient = Seconds{t.input};
  cost.weight_gradient = Seconds{t.weight};
  const Program program = test::program_of(schedule, plan, uniform_costs(plan, cost));
  const Cluster cluster = test::delay_cluster(p, 0);
  return measure(program, get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {}), cluster)
      .makespan.value;
}

/// Report of one iteration; checks that both simulators, and the order without a model, give the same.
Report report_of(std::string_view schedule, int p, int micro_batches, Times t) {
  const Experiment s = scenario(schedule, p, micro_batches, t);
  const CompiledExperiment prepared = compile(s);
  const Report ideal = run(prepared, "ideal").report;
  CHECK(run(prepared, "simgrid").report.makespan.value == doctest::Approx(ideal.makespan.value).epsilon(1e-9));
  CHECK(ideal.makespan.value == doctest::Approx(without_model(schedule, p, micro_batches, t)).epsilon(1e-12));
  return ideal;
}

double bubble(const Report& report, int micro_batches, Times t) {
  return report.makespan.value - micro_batches * (t.forward + t.input + t.weight);
}

std::vector<std::int64_t> activations(const Report& report) {
  std::vector<std::int64_t> counts;
  for (const DeviceReport& d : report.devices) counts.push_back(d.memory.activations);
  return counts;
}

std::string refusal(const Experiment& s) {
  try {
    compile(s);
  } catch (const Infeasible& e) {
    return std::string(e.what()) + "; " + e.problem().help;
  }
  return {};
}

}  // namespace

TEST_CASE("chimera where F = B: D - 2 units of bubble, p/2 + 1 to p alive") {
  const Times t{1, 0.5, 0.5};
  for (const int p : {2, 4, 8})
    for (const int m : {p, 2 * p}) {
      const Report report = report_of("chimera", p, m, t);
      CHECK(bubble(report, m, t) == doctest::Approx(p - 2).epsilon(1e-12));
      const auto alive = activations(report);
      CHECK(alive.front() == p / 2 + 1);
      CHECK(*std::max_element(alive.begin(), alive.end()) == p);
    }
}

TEST_CASE("dualpipe: (p / 2 - 1)(2F + I - W) of bubble, p + 1 alive") {
  for (const int p : {2, 4, 8})
    for (const Times t : {Times{1, 1, 1}, Times{1, 1, 0.5}, Times{2, 1.5, 1}}) {
      const Report report = report_of("dualpipe", p, 2 * p + 2, t);
      CHECK(bubble(report, 2 * p + 2, t) ==
            doctest::Approx((p / 2 - 1) * (2 * t.forward + t.input - t.weight)).epsilon(1e-12));
      for (const std::int64_t alive : activations(report)) CHECK(alive == p + 1);
    }
}

TEST_CASE("gems: one micro-batch is alive in each direction, on any number of devices") {
  for (const int p : {1, 2, 3, 4})
    for (const std::int64_t alive : activations(report_of("gems", p, 6, {1, 1, 1}))) CHECK(alive == 2);
}

TEST_CASE("every device keeps weights, gradients and optimizer state of two stages") {
  const auto memory = [](const char* schedule) {
    return compile(scenario(schedule, 4, 8, {1, 1, 1}, {"model.parameters=1e6"})).program.memory;
  };
  const auto one = memory("1f1b");
  for (const char* schedule : {"chimera", "gems", "dualpipe"}) {
    const auto two = memory(schedule);
    for (const DeviceId d : one.ids()) {
      CHECK(one[d].weights.value > 0);
      CHECK(two[d].weights.value == 2 * one[d].weights.value);
      CHECK(two[d].gradients.value == 2 * one[d].gradients.value);
      CHECK(two[d].optimizer.value == 2 * one[d].optimizer.value);
    }
  }
}

TEST_CASE("backwards of the first stage hide the all-reduce of the last, and nothing hides the first's") {
  // F = 1, B = 2. Rank 0: 0F0 3F1 3B1 0B0, rank 1: 2F1 1F0 1B0 2B1. Gradients of stages 1 and 3 are there at 4, those
  // of 0 and 2 at 6; two members move the bytes of one copy over each edge.
  const Experiment s = scenario("chimera", 2, 2, {1, 1, 1}, {"model.parameters=5e8"});
  const CompiledExperiment p = compile(s);
  const StageCost& cost = p.costs.at(StageId{0}, 0);
  const double reduce = cost.memory.gradients.value / 4e9;
  REQUIRE(reduce > cost.update.value);
  REQUIRE(reduce <= 2);
  for (const char* backend : {"ideal", "simgrid"}) {
    const Timeline t = run(p, backend).timeline;
    CHECK(t.end_of(test::find(p.program, "1AR0")).value == doctest::Approx(4 + reduce).epsilon(1e-9));
    CHECK(t.end_of(test::find(p.program, "0AR0")).value == doctest::Approx(6 + reduce).epsilon(1e-9));
    CHECK(t.last_end().value == doctest::Approx(6 + reduce + cost.update.value).epsilon(1e-9));
  }
}

TEST_CASE("replicas of both copies reduce together") {
  const Experiment s =
      scenario("chimera", 4, 4, {1, 1, 1},
               {"plan.stages=2", "plan.replicas=2", "plan.micro_batch_size=2", "model.parameters=1e6"});
  const CompiledExperiment p = compile(s);
  REQUIRE(p.program.collectives.size() == 2);
  for (const CollectiveCall& c : p.program.collectives) CHECK(c.members == 4);
  CHECK(run(p, "simgrid").report.makespan.value ==
        doctest::Approx(run(p, "ideal").report.makespan.value).epsilon(1e-9));
}

// The middle of an odd number of ranks has both copies of its stage.
TEST_CASE("two copies on the same devices sum their gradients over these devices once") {
  for (const char* collectives : {"cost", "flows"}) {
    CAPTURE(collectives);
    const auto plan_with = [&](const char* schedule) {
      return compile(load_experiment(
          "scenarios/examples/search-groups.yaml",
          {"model={base: llama-3-8b, override: {layers: 4}}", "cluster={base: superpod-h100-256, override: {nodes: 1}}",
           "plan={planner: balanced, stages: 1, replicas: 4, group: {tensor: 2}}", "run.global_batch=16",
           fmt::format("run.collectives={}", collectives), fmt::format("run.schedule={}", schedule)}));
    };
    const CompiledExperiment both_ways = plan_with("gems"), one_way = plan_with("1f1b");
    REQUIRE(both_ways.plan.stages.size() == 2);
    const auto sum_of = [](const CompiledExperiment& c) {
      const auto sum = std::find_if(c.program.collectives.begin(), c.program.collectives.end(),
                                    [](const CollectiveCall& one) { return one.purpose == Purpose::GradientSum; });
      REQUIRE(sum != c.program.collectives.end());
      double bytes = 0;
      for (const CollectivePhase& phase : c.program.phases_of(*sum))
        bytes += phase.routes * static_cast<double>(sum->bytes(phase));
      return std::tuple(sum->members, c.program.at(sum->first).duration.value, bytes);
    };
    CHECK(sum_of(both_ways) == sum_of(one_way));
  }
}

TEST_CASE("a refusal says why, and what would help") {
  const Times t{1, 1, 1};
  CHECK(refusal(scenario("chimera", 3, 6, t)).find("an even number of devices") != std::string::npos);
  CHECK(refusal(scenario("dualpipe", 3, 6, t)).find("2 or 4 devices") != std::string::npos);
  CHECK(refusal(scenario("dualpipe", 4, 6, t)).find("an even number from 8 on") != std::string::npos);
  CHECK(refusal(scenario("gems", 2, 1, t)).find("at least 2 in run.micro_batches") != std::string::npos);
  CHECK(refusal(scenario("chimera", 4, 4, t, {"cluster.devices=2"})).find("4 stages need 4 devices") !=
        std::string::npos);
}

}  // namespace stagecraft::both_ways_test
