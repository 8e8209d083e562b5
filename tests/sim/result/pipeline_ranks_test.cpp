#include "sim/result/pipeline_ranks.hpp"

#include <doctest/doctest.h>

#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::pipeline_ranks_test {
namespace {

StageCost sized() {
  StageCost cost = test::times(1, 2, 0.5);
  cost.memory.stash = Bytes{100};
  cost.memory.weights = Bytes{1000}, cost.memory.gradients = Bytes{500}, cost.memory.optimizer = Bytes{2000};
  return cost;
}

/// Two stages on two replicas each, which divide the samples: devices 0 and 1, then 2 and 3.
Plan two_by_two() {
  Plan plan = chain_plan(2, 2, 4);
  plan.mini_batch = 8;
  int next = 0;
  for (Stage& stage : plan.stages) {
    stage.micro_batch_size = 2;
    stage.place_on({DeviceId{next}, DeviceId{next + 1}});
    next += 2;
  }
  return plan;
}

struct Run {
  Program program;
  Cluster cluster;
  Report report;
};

Run run_of(const Plan& plan, const StageCosts& costs, const char* schedule = "1f1b") {
  Run run;
  run.program = test::program_of(schedule, plan, costs, test::pure_delays());
  run.cluster = test::delay_cluster(run.program.devices, 0);
  run.report = measure(run.program, test::run_ideal(run.program, run.cluster), run.cluster);
  return run;
}

std::vector<std::string> labels(const std::vector<PipelineRank>& ranks) {
  std::vector<std::string> list;
  for (const PipelineRank& r : ranks) list.push_back(label(r));
  return list;
}

}  // namespace

TEST_CASE("equal replicas of a pipeline rank are one row, with the memory of one device by class") {
  const Plan plan = two_by_two();
  const Run run = run_of(plan, uniform_costs(plan, sized()));
  const std::vector<PipelineRank> ranks = pipeline_ranks(plan, run.program, run.report, run.cluster);
  CHECK(labels(ranks) == std::vector<std::string>{"PP 0 x 2 replicas", "PP 1 x 2 replicas"});
  CHECK(ranks[0].stages == std::vector<StageId>{StageId{0}});
  CHECK(ranks[0].first == DeviceId{0});
  CHECK(ranks[1].first == DeviceId{2});
  CHECK(ranks[0].resident.weights.value == 1000);
  CHECK(ranks[0].resident.gradients.value == 500);
  CHECK(ranks[0].resident.optimizer.value == 2000);
  CHECK(ranks[0].memory.stash.value == 200);
  CHECK(ranks[1].memory.stash.value == 100);
  for (const PipelineRank& r : ranks) {
    CHECK((r.resident.total() + r.memory.stash + r.messages()).value == r.memory.total.value);
    CHECK(r.time.total().value == doctest::Approx(run.report.period.value));
  }
}

TEST_CASE("replicas of other times or of another type are rows of their own") {
  const Plan plan = two_by_two();
  StageCosts costs = uniform_costs(plan, sized());
  costs.at(StageId{0}, 1).forward = Seconds{1.5};
  const Run slow = run_of(plan, costs);
  CHECK(labels(pipeline_ranks(plan, slow.program, slow.report, slow.cluster)) ==
        std::vector<std::string>{"PP 0", "PP 0", "PP 1 x 2 replicas"});

  Run mixed = run_of(plan, uniform_costs(plan, sized()));
  mixed.cluster.types.push_back(mixed.cluster.types.front());
  mixed.cluster.devices[DeviceId{3}].type = DeviceTypeId{mixed.cluster.types.size() - 1};
  const std::vector<PipelineRank> ranks = pipeline_ranks(plan, mixed.program, mixed.report, mixed.cluster);
  CHECK(labels(ranks) == std::vector<std::string>{"PP 0 x 2 replicas", "PP 1", "PP 1"});
  CHECK(ranks[2].first == DeviceId{3});
}

TEST_CASE("differences below half a percent do not divide replicas, and the fullest device gives the memory") {
  const Plan plan = two_by_two();
  Run run = run_of(plan, uniform_costs(plan, sized()));
  DeviceReport& second = run.report.devices[DeviceId{1}];
  second.utilisation += 0.004;
  second.memory.total += Bytes{10};
  CHECK(pipeline_ranks(plan, run.program, run.report, run.cluster).front().memory.total.value ==
        run.report.devices[DeviceId{0}].memory.total.value + 10);
  second.memory.total += Bytes{10};  // 20 of 3,720.
  CHECK(labels(pipeline_ranks(plan, run.program, run.report, run.cluster)).size() == 3);
}

TEST_CASE("a rank with several stages, or with both ends of a V, is one row") {
  const Plan loop = chain_plan(4, 2, 4);
  const Run run = run_of(loop, uniform_costs(loop, sized()), "interleaved");
  const std::vector<PipelineRank> ranks = pipeline_ranks(loop, run.program, run.report, run.cluster);
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[1].stages == std::vector<StageId>{StageId{1}, StageId{3}});
  CHECK(ranks[1].resident.weights.value == 2000);
}

TEST_CASE("devices that the instructions of one stand for count in its row") {
  PipelineRank rank{.rank = RankId{3}, .stages = {StageId{3}}, .devices = 64, .tensor = 8};
  CHECK(label(rank) == "PP 3 x 8 replicas x TP 8");
  rank.context = 2;
  CHECK(label(rank) == "PP 3 x 4 replicas x TP 8 x CP 2");
  rank.devices = 63;
  CHECK(label(rank) == "PP 3 x 63 devices");
}

}  // namespace stagecraft::pipeline_ranks_test
