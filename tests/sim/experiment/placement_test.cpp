// Schedules with several stages on a device, from a scenario: the placement of stages, and refusals.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/schedule/builder.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/ideal.hpp"

namespace stagecraft::placement_test {
namespace {

constexpr const char* kFile = "scenarios/papers/zero-bubble/1.5b-m24.yaml";  // 8 layers, 8 devices

Plan plan_of(const std::vector<std::string>& sets) { return compile(load_experiment(kFile, sets)).plan; }

std::vector<int> devices(const Plan& plan) {
  std::vector<int> numbers;
  for (const Stage& stage : plan.stages) numbers.push_back(stage.leaders.front().value);
  return numbers;
}

std::string refusal(const std::vector<std::string>& sets) {
  return test::input_error_of([&] { plan_of(sets); });
}

}  // namespace

TEST_CASE("stages are placed as the schedule requires") {
  CHECK(devices(plan_of({"run.schedule=1f1b"})) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(devices(plan_of({"run.schedule=interleaved"})) == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(devices(plan_of({"run.schedule={name: interleaved, chunks: 4}"})) == std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(devices(plan_of({"run.schedule=zb-v"})) == std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(devices(plan_of({"run.schedule={name: hanayo, chunks: 4}"})) == std::vector<int>{0, 1, 1, 0, 0, 1, 1, 0});
  CHECK(devices(plan_of({"run.schedule=zb-v", "plan.placement=v"})) == std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(devices(plan_of({"run.schedule=interleaved", "plan.devices=[gpu7, gpu2]"})) ==
        std::vector<int>{7, 2, 7, 2, 7, 2, 7, 2});
}

TEST_CASE("replicas of a rank lie together and run the same order") {
  const CompiledExperiment p = compile(
      load_experiment(kFile, {"run.schedule=zb-v", "plan.replicas=2", "plan.micro_batch_size=2", "plan.stages=8"}));
  CHECK(p.plan.stages[StageId{0}].leaders == std::vector<DeviceId>{DeviceId{0}, DeviceId{1}});
  CHECK(p.plan.stages[StageId{7}].leaders == p.plan.stages[StageId{0}].leaders);
  CHECK(p.schedule.row(DeviceId{0}) == p.schedule.row(DeviceId{1}));
}

TEST_CASE("explicit stages may be placed as the schedule requires, on any devices") {
  const auto plan = [](const std::string& second) {
    return "plan={planner: explicit, stages: {a: {layers: [l0..l1], device: gpu5}, b: {layers: [l2..l3], device: "
           "gpu1}, "
           "c: {layers: [l4..l5], device: " +
           second + "}, d: {layers: [l6..l7], device: " + (second == "gpu5" ? "gpu1" : "gpu5") + "}}}";
  };
  CHECK(devices(plan_of({plan("gpu5"), "run.schedule=interleaved"})) == std::vector<int>{5, 1, 5, 1});
  CHECK(devices(plan_of({plan("gpu1"), "run.schedule=zb-v"})) == std::vector<int>{5, 1, 1, 5});
  CHECK(refusal({plan("gpu5"), "run.schedule=zb-v"}).find("goes with the placement 'v'") != std::string::npos);
}

TEST_CASE("every schedule runs from a scenario") {
  int run = 0;
  for (const ScheduleDef* def : schedules::catalog()) {
    if (def->name == "csv") continue;
    CAPTURE(def->name);
    std::vector<std::string> sets = {"run.schedule=" + std::string(def->name)};
    if (def->vocabulary != VocabularyPasses::None) {  // They divide words.
      sets.emplace_back("plan.vocabulary=all");
      sets.emplace_back(
          "model={builder: transformer, kind: gpt, layers: 8, hidden: 64, heads: 4, sequence: 16, vocabulary: 50}");
    }
    if (def->name == "layerpipe") sets.emplace_back("plan={planner: layerpipe}");  // It takes no whole stages.
    const CompiledExperiment p = compile(load_experiment(kFile, sets));
    CHECK(test::run_ideal(p.program, p.cluster()).last_end().value > 0);
    ++run;
  }
  CHECK(run >= 28);
}

TEST_CASE("a schedule with two copies of the model needs a plan with two copies") {
  CHECK(devices(plan_of({"run.schedule=chimera", "plan.stages=4"})) == std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(refusal({"run.schedule=chimera", "plan.placement=v"}).find("two copies of the model") != std::string::npos);
}

TEST_CASE("a placement that the schedule does not run is refused, with placements that it runs") {
  CHECK(refusal({"run.schedule=zb-v", "plan.placement=loop"}).find("plan.placement: auto, or v") != std::string::npos);
  CHECK(refusal({"run.schedule=interleaved", "plan.placement=v"}).find("plan.placement: loop, or auto") !=
        std::string::npos);
  CHECK(refusal({"run.schedule=1f1b", "plan.placement=v"}).find("runs one stage on a device") != std::string::npos);
}

TEST_CASE("stages that do not divide into chunks are refused") {
  CHECK(refusal({"run.schedule=zb-v", "plan.stages=7"}).find("a multiple of 2") != std::string::npos);
  CHECK(refusal({"run.schedule={name: hanayo, chunks: 3}"}).find("cannot have 3 stages") != std::string::npos);
  CHECK_THROWS_AS(plan_of({"run.schedule=zb-v", "plan.devices=[gpu0, gpu1, gpu2]"}), Infeasible);
}

}  // namespace stagecraft::placement_test
