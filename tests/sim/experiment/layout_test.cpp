// Layouts of Megatron-LM as plans.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"

namespace stagecraft::layout_test {
namespace {

Plan plan_of(const std::string& layout, const std::string& schedule = "1f1b", const std::string& model = "llama-3-8b") {
  return plan_experiment(load_experiment("examples/llama-3-8b-4x8",
                                         {"model=" + model, "plan={layout: \"" + layout + "\"}",
                                          "run={schedule: " + schedule + ", micro_batches: 16, iterations: 3}"}))
      .plan;
}

std::string refusal(const std::string& layout) {
  try {
    plan_of(layout);
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "accepted";
}

std::vector<std::size_t> layer_counts(const Plan& plan) {
  std::vector<std::size_t> counts;
  for (const Stage& stage : plan.stages) counts.push_back(stage.shape.layers.size());
  return counts;
}

}  // namespace

TEST_CASE("letters, repetitions and groups of a layout become stages") {
  // Two layers before the first transformer layer (words, embedding), three after the last (norm, scores, loss).
  CHECK(layer_counts(plan_of("Et*17|t*15L")) == std::vector<std::size_t>{19, 18});
  CHECK(layer_counts(plan_of("E,(t*8|)*4,L")) == std::vector<std::size_t>{10, 8, 8, 8, 3});
  CHECK(layer_counts(plan_of("Etttt|(t*7|)*4L", "1f1b")) == std::vector<std::size_t>{6, 7, 7, 7, 7, 3});
}

TEST_CASE("stages of a layout go round the ranks where the schedule is interleaved") {
  const Plan plan = plan_of("E(t*8|)*3t*8L", "interleaved");
  CHECK(plan.stages.size() == 4);
  CHECK(plan.stage(StageId{0}).leaders == plan.stage(StageId{2}).leaders);
}

TEST_CASE("modules for the token after next have a letter of their own") {
  const Plan plan = plan_of("Et*3|(tt|)*29m|L", "1f1b", "{base: deepseek-v3, override: {next_tokens: 1}}");
  CHECK(plan.stages.size() == 32);
  CHECK(plan.stages.back().shape.layers.size() == 3);
}

TEST_CASE("a layout that does not fit the model is refused at its place") {
  CHECK(refusal("Et*31|L") == "the layout has 31 't', and the model has 32 transformer layers");
  CHECK(refusal("t*32|L") == "the layout has 0 'E', and the model has 1 embedding");
  CHECK(refusal("Et*16||t*16L") == "stage 1 has no layers");
  CHECK(refusal("Et*32x|L") == "'x' is no part of a layout at character 6 of 'Et*32x|L'");
  CHECK(refusal("E(t*32|L") == "a parenthesis is not closed at character 8 of 'E(t*32|L'");
  CHECK(refusal("Et*32)|L") == "a parenthesis was not opened at character 6 of 'Et*32)|L'");
  CHECK(refusal("Et*|L") == "a number from 1 on has to follow at character 3 of 'Et*|L'");
}

}  // namespace stagecraft::layout_test
