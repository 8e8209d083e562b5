// The first version of scenarios, which counts the samples of all replicas together, and its equal in the second.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::scenario_version_test {
namespace {

std::string first_version(const std::string& plan) {
  const std::string file = "build/scenario_version_test.yaml";
  test::write_file(file, "schema: scenario/1\nmodel: gpt2-small\ncluster: two-node-mixed\nplan: " + plan +
                             "\nrun: {schedule: 1f1b, micro_batches: 8, iterations: 3}\n");
  return file;
}

/// What `resolve` prints, as a file.
std::string resolved(const std::string& first) {
  const std::string file = "build/scenario_version_test_resolved.yaml";
  test::write_file(file, config::to_yaml(in_second_version(load_scenario(first, {}).tree), true));
  return file;
}

std::string problem_of(const std::string& plan) {
  try {
    in_second_version(load_scenario(first_version(plan), {}).tree);
  } catch (const InputError& e) {
    return e.problems().front().path + ": " + e.problems().front().message;
  }
  return "none";
}

std::string written(const std::string& file, const char* field) {
  const Scenario scenario = load_scenario(file, {});
  const config::Value& plan = scenario.tree.at("plan");
  const config::Value* stages = plan.find("stages");
  return stages && stages->is_list() ? stages->items.back().at(field).text : plan.at(field).text;
}

}  // namespace

TEST_CASE("a scenario of the first version resolves to an equal one of the second") {
  const std::pair<std::string, std::string> cases[] = {
      {"{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 6}", "3"},
      {"{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 6, share: micro_batches}", "6"},
      {"{planner: balanced, stages: 4, micro_batch_size: 6}", "6"},
      {"{planner: pipedream, micro_batch_size: 8}", "8"},
      {"{planner: explicit, stages: [{layers: [tok..l5], device: h100-0.gpu0, micro_batch_size: 4}, "
       "{layers: [l6..loss], devices: [a100-0.gpu0, a100-0.gpu1], micro_batch_size: 4}]}",
       "2"},
      {"{planner: explicit, stages: [{layers: [tok..l5], device: h100-0.gpu0, micro_batch_size: 4}, "
       "{layers: [l6..loss], devices: [a100-0.gpu0, a100-0.gpu1], micro_batch_size: 4, share: micro_batches}]}",
       "4"}};
  for (const auto& one : cases) {
    const auto& [plan, size] = one;
    CAPTURE(one.first);
    const std::string first = first_version(plan), second = resolved(first);
    CHECK(load_scenario(second, {}).tree.at("schema").text == "scenario/2");
    CHECK(load_scenario(second, {}).tree.at("software").text == "none");
    CHECK(written(second, "micro_batch_size") == size);
    const CompiledExperiment a = compile(load_experiment(first, {})), b = compile(load_experiment(second, {}));
    CHECK(to_text(a.plan) == to_text(b.plan));
    CHECK(run(a, "ideal").report.period.value == run(b, "ideal").report.period.value);
    CHECK(run(a, "ideal").report.throughput == run(b, "ideal").report.throughput);
  }
}

TEST_CASE("a scenario of the second version resolves to itself") {
  const Scenario scenario = load_scenario("examples/gpt-2bw-8x2", {});
  CHECK(config::to_yaml(in_second_version(scenario.tree), false) == config::to_yaml(scenario.tree, false));
}

TEST_CASE("samples that replicas cannot divide evenly stay in the first version") {
  CHECK(problem_of("{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 3}") ==
        "plan.micro_batch_size: 3 samples of all replicas together cannot be divided by 2 replicas, and scenario/2 "
        "counts the samples of one replica");
  CHECK(problem_of("{planner: explicit, stages: [{layers: [tok..l5], device: h100-0.gpu0, micro_batch_size: 4}, "
                   "{layers: [l6..loss], devices: [a100-0.gpu0, a100-0.gpu1], micro_batch_size: 1}]}") ==
        "plan.stages[1].micro_batch_size: 1 sample of all replicas together cannot be divided by 2 replicas, and "
        "scenario/2 counts the samples of one replica");
}

}  // namespace stagecraft::scenario_version_test
