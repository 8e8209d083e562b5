// `plan.pipeline` and `plan.chunks` beside `plan.stages`, and sizes of clusters beside `base`.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/stages_of_schedule.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::pipeline_fields_test {
namespace {

using Sets = std::vector<std::string>;

/// gpt2-xl on 32 GPUs; `plan` without braces.
Sets sets(const std::string& plan, const std::string& schedule, const Sets& more = {}) {
  Sets options{"model=gpt2-xl", "plan={" + plan + "}", "run.schedule=" + schedule, "run.global_batch=64"};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

Scenario scenario(const std::string& plan, const std::string& schedule, const Sets& more = {}) {
  return load_scenario("examples/llama-3-8b-4x8", sets(plan, schedule, more));
}

std::string refusal(const std::string& plan, const std::string& schedule, const Sets& more = {}) {
  return test::input_error_of([&] { compile(load_experiment("examples/llama-3-8b-4x8", sets(plan, schedule, more))); });
}

std::string field(const Scenario& s, const char* name) {
  const config::Value* value = s.tree.at("plan").find(name);
  return value ? value->text : "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("pipeline ranks and chunks are stages, and both are written out") {
  struct Row {
    const char *plan, *schedule, *pipeline, *chunks, *stages;
  };
  for (const Row& row : {Row{"planner: balanced, pipeline: 4, chunks: 3", "interleaved", "4", "3", "12"},
                         {"pipeline: 4, chunks: 3", "interleaved", "4", "3", "12"},
                         {"pipeline: 4", "{name: interleaved, chunks: 3}", "4", "3", "12"},
                         {"pipeline: 4", "interleaved", "4", "2", "8"},
                         {"pipeline: 4", "1f1b", "4", "1", "4"},
                         {"planner: balanced, pipeline: 4, stages: 12", "interleaved", "4", "3", "12"},
                         {"pipeline: 4", "zb-v", "4", "2", "8"},
                         {"pipeline: 4", "dualpipe", "4", "1", "4"},
                         {"planner: balanced, stages: 12", "{name: interleaved, chunks: 3}", "4", "3", "12"},
                         {"planner: balanced, stages: 4", "1f1b", "4", "1", "4"}}) {
    CAPTURE(row.plan);
    CAPTURE(row.schedule);
    const Scenario s = scenario(row.plan, row.schedule);
    CHECK(field(s, "pipeline") == row.pipeline);
    CHECK(field(s, "chunks") == row.chunks);
    CHECK(field(s, "stages") == row.stages);
    CHECK(pipeline_ranks(plan_experiment(read_experiment(s)).plan) == 4);
    // The resolved text reads back as the same scenario.
    CHECK(load_scenario("examples/llama-3-8b-4x8", sets(row.plan, row.schedule)).hash() == s.hash());
  }
  CHECK(scenario("pipeline: 4, chunks: 3", "interleaved").hash() ==
        scenario("planner: balanced, stages: 12", "{name: interleaved, chunks: 3}").hash());
}

TEST_CASE("an option takes the place of the other form") {
  const char* const plan = "planner: balanced, pipeline: 4, chunks: 3";
  CHECK(field(scenario(plan, "interleaved", {"plan.stages=16"}), "stages") == "16");
  CHECK(field(scenario(plan, "interleaved", {"plan.chunks=2"}), "stages") == "8");
  CHECK(field(scenario("planner: balanced, stages: 4", "1f1b", {"plan.pipeline=8"}), "stages") == "8");
}

TEST_CASE("numbers that contradict each other are refused with the rule") {
  CHECK(says(refusal("planner: balanced, pipeline: 4, chunks: 3, stages: 8", "interleaved"),
             "4 pipeline ranks of 3 chunks are 12 stages, and plan.stages is 8: stages are pipeline x chunks"));
  CHECK(says(refusal("pipeline: 4, chunks: 3", "{name: interleaved, chunks: 2}"),
             "plan.chunks is 3, and run.schedule.chunks 2"));
  CHECK(says(refusal("pipeline: 4, chunks: 2", "1f1b"), "the schedule '1f1b' cannot have 2 stages on each rank"));
  CHECK(says(refusal("planner: layout, pipeline: 8, layout: \"Et*12|t*12|t*12|t*12L\"", "1f1b"),
             "the plan has 4 pipeline ranks, not 8"));
  CHECK(says(refusal("pipeline: four", "1f1b"), "plan.pipeline"));
}

TEST_CASE("clusters have any number of nodes beside their base") {
  for (const char* name : {"superpod-h100-256", "superpod-b200", "superpod-mi300x"}) {
    CAPTURE(name);
    const Sets small{std::string("cluster={base: ") + name + ", nodes: 4}"};
    CHECK(load_experiment("examples/llama-3-8b-4x8", small).cluster->devices.size() == 32);
  }
  CHECK(load_experiment("examples/llama-3-8b-4x8", {"cluster={base: superpod-gb200, nodes: 2}"})
            .cluster->devices.size() == 144);
  CHECK(load_experiment("examples/llama-3-8b-4x8", {"cluster={base: superpod-h100-256, nodes: 4}"}).scenario_hash ==
        load_experiment("examples/llama-3-8b-4x8", {"cluster={base: superpod-h100-256, override: {nodes: 4}}"})
            .scenario_hash);
}

}  // namespace stagecraft::pipeline_fields_test
