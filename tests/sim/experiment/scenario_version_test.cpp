// The first version of scenarios, which counts the samples of all replicas together, and its equal in the second.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/scenario_variants.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::scenario_version_test {
namespace {

std::string first_version(const std::string& plan) {
  const std::string file = test::own_file(
      "scenario_version_test.yaml", "schema: scenario/1\nmodel: gpt2-small\ncluster: two-node-mixed\nplan: " + plan +
                                        "\nrun: {schedule: 1f1b, micro_batches: 8, iterations: 3}\n");
  return file;
}

/// What `resolve` prints, as a file.
std::string resolved(const std::string& first) {
  const std::string file =
      test::own_file("scenario_version_test_resolved.yaml", config::to_yaml(load_scenario(first, {}).tree, true));
  return file;
}

std::string problem_of(const std::string& plan) {
  try {
    load_scenario(first_version(plan), {});
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
       "4"},
      {"{planner: explicit, stages: [{layers: [tok..l5], device: h100-0.gpu0, micro_batch_size: 4}, "
       "{layers: [l6..loss], devices: ['a100-0.gpu[0-1]'], micro_batch_size: 4}]}",
       "2"},
      {"{planner: explicit, stages: {first: {layers: [tok..l5], device: h100-0.gpu0, micro_batch_size: 4}, "
       "second: {layers: [l6..loss], devices: [a100-0.gpu0, a100-0.gpu1], micro_batch_size: 4}}}",
       "2"}};
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

TEST_CASE("a scenario of the second version stays as it is, without a note") {
  const Scenario scenario = load_scenario("examples/gpt-2bw-8x2", {});
  CHECK(scenario.tree.at("schema").origin.empty());
  CHECK(older_form_notes(scenario.tree).empty());
}

TEST_CASE("options change a scenario of the first version before it becomes one of the second") {
  const std::string file = first_version("{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 8}");
  const config::Value tree = load_scenario(file, {"plan.replicas=4"}).tree;
  CHECK(tree.at("plan").at("micro_batch_size").text == "2");
  CHECK(load_experiment(file, {"plan.replicas=4"}).plan.micro_batch_size == 8);
  CHECK(load_scenario(file, {"software=plain"}).tree.at("software").at("base").text == "plain");
  REQUIRE(older_form_notes(tree).size() == 1);
  CHECK(older_form_notes(tree).front().find("scenario/2") != std::string::npos);
}

TEST_CASE("what a command changes in a scenario of the first version counts as in the second") {
  const std::string file = first_version("{planner: balanced, stages: 1, replicas: 2, micro_batch_size: 8}");
  const Experiment base = load_experiment(file, {"plan.micro_batch_size=4"});
  CHECK(base.plan.micro_batch_size == 4);
  CHECK(scenario_reader(file, {"plan.micro_batch_size=4"}, base)({"plan.replicas=4"}).plan.micro_batch_size == 8);
}

TEST_CASE("a global batch counts every device of a range") {
  const std::string file = test::own_file(
      "scenario_version_test_range.yaml",
      "schema: scenario/2\nmodel: gpt2-small\ncluster: two-node-mixed\nplan: {planner: explicit, stages: "
      "[{layers: [tok..loss], devices: ['a100-0.gpu[0-1]'], micro_batch_size: 2}]}\n"
      "run: {schedule: 1f1b, global_batch: 32, iterations: 3}\n");
  CHECK(load_scenario(file, {}).tree.at("run").at("micro_batches").text == "8");
  CHECK(compile(load_experiment(file, {})).plan.mini_batch == 32);
}

TEST_CASE("samples that replicas cannot divide evenly are refused") {
  CHECK(problem_of("{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 3}") ==
        "plan.micro_batch_size: 3 samples of all replicas together cannot be divided by 2 replicas, and scenario/2 "
        "counts the samples of one replica");
  CHECK(problem_of("{planner: explicit, stages: [{layers: [tok..l5], device: h100-0.gpu0, micro_batch_size: 4}, "
                   "{layers: [l6..loss], devices: [a100-0.gpu0, a100-0.gpu1], micro_batch_size: 1}]}") ==
        "plan.stages[1].micro_batch_size: 1 sample of all replicas together cannot be divided by 2 replicas, and "
        "scenario/2 counts the samples of one replica");
}

}  // namespace stagecraft::scenario_version_test
