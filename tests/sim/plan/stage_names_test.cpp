// Equal problems of several stages are one.

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_names.hpp"

namespace stagecraft::stage_names_test {
namespace {

std::vector<Diagnostic> problems_of(const Plan& plan) {
  try {
    check_plan(plan);
  } catch (const InputError& e) {
    return e.problems();
  }
  return {};
}

}  // namespace

TEST_CASE("names of stages that follow each other are a range") {
  CHECK(stages_text({"s0"}) == "stage 's0'");
  CHECK(stages_text({"s0", "s1", "s2", "s3"}) == "each of the stages s0..s3");
  CHECK(stages_text({"s0", "s1"}) == "each of the stages s0, s1");
  CHECK(stages_text({"s0", "s1", "s4", "s5", "s6", "s10"}) == "each of the stages s0, s1, s4..s6, s10");
  CHECK(stages_text({"s9", "s10", "s11"}) == "each of the stages s9..s11");
  CHECK(stages_text({"encoder", "decoder", "head"}) == "each of the stages encoder, decoder, head");
  CHECK(stages_text({"a1", "b2", "a3"}) == "each of the stages a1, b2, a3");
}

TEST_CASE("the same problem of eight stages is told once, and another of one stage for itself") {
  Plan plan;
  plan.mini_batch = 8;
  for (int s = 0; s < 8; ++s) {
    Stage stage;
    stage.name = "s" + std::to_string(s);
    stage.micro_batch_size = s == 5 ? 3 : 1;
    stage.place_on({DeviceId{2 * s}, DeviceId{2 * s + 1}});
    plan.stages.push_back(stage);
  }
  const std::vector<Diagnostic> problems = problems_of(plan);
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].path == "each of the stages s0..s4, s6, s7");
  CHECK(problems[0].message == "its micro-batch of 1 sample cannot be divided among 2 replicas");
  CHECK(problems[1].path == "stage 's5'");
  CHECK(problems[1].message == "its micro-batch of 3 samples does not divide the mini-batch of 8");
}

}  // namespace stagecraft::stage_names_test
