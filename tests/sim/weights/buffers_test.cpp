// Number of buffers, each of the size of the weights, that a stage needs, compared with the formulas of the papers.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/weights.hpp"

namespace stagecraft::buffers_test {
namespace {

struct Case {
  int depth, each, stage;

  int stages_after() const { return depth - 1 - stage; }
  int delay() const { return (stages_after() + each - 1) / each; }
};

/// Long enough for the steady state.
int buffers(const Case& c, const WeightsRule& rule) {
  const Plan plan = chain_plan(c.depth, c.depth, c.each);
  const Schedule schedule = test::build("pipedream", plan, 3 * c.depth / c.each + 4);
  return WeightReads(schedule, plan, rule).needs(StageId{c.stage}, 0).buffers;
}

template <class Check>
void for_all(Check&& check) {
  for (const int depth : {2, 4, 8})
    for (const int each : {1, 4, depth})
      for (int stage = 0; stage < depth; ++stage) {
        CAPTURE(depth);
        CAPTURE(each);
        CAPTURE(stage);
        check(Case{depth, each, stage});
      }
}

}  // namespace

TEST_CASE("policies that stash nothing keep one version") {
  for_all([](const Case& c) {
    for (const char* name : {"flush", "naive", "spike-compensation"}) CHECK(buffers(c, test::policy(name)) == 1);
  });
}

TEST_CASE("stashing keeps a version for each update between forward and backward, and the newest") {
  for_all([](const Case& c) {
    const int count = buffers(c, test::policy("stash"));
    CHECK(count == c.delay() + 1);
    if (c.each == 1) CHECK(count == c.depth - c.stage);  // PipeDream's num_versions
  });
}

TEST_CASE("vertical sync: every stage keeps the versions that the first stage reads late") {
  // T = 1: D. In general micro-batch q reads (q - (D-1)) / T while q / T are made.
  for_all([](const Case& c) {
    const int count = buffers(c, test::policy("vertical-sync"));
    CHECK(count == (c.depth - 1 + c.each - 1) / c.each + 1);
    if (c.each == 1) CHECK(count == c.depth);
  });
}

TEST_CASE("2bw keeps two versions, wherever it is allowed") {
  for_all([](const Case& c) {
    if (c.each >= c.depth - 1) CHECK(buffers(c, test::policy("2bw")) == 2);
  });
}

TEST_CASE("a prediction for the forward alone takes one scratch buffer") {
  for_all([](const Case& c) {
    CHECK(buffers(c, test::policy("pipeoptim")) == (c.stages_after() > 0 ? 2 : 1));
    CHECK(buffers(c, test::policy("geometric")) == (c.stages_after() > 0 ? 2 : 1));
    CHECK(buffers(c, *get_from(weights::catalog(), "", "pipeoptim").as_released) == 2);
  });
}

TEST_CASE("spectrain: forward and backward share one scratch buffer, next to the momentum") {
  CHECK(test::policy("spectrain").needs_momentum());
  for_all([](const Case& c) {
    const int predictions = (c.stage / 2 + c.stages_after() > 0) + (c.stage / 2 > 0);
    CHECK(buffers(c, test::policy("spectrain")) == (predictions > 0 ? 2 : 1));
  });
}

TEST_CASE("spectrain-v2 keeps a prediction for each micro-batch in flight") {
  for_all([](const Case& c) {
    CHECK(buffers(c, test::policy("spectrain-v2")) == (c.stages_after() > 0 ? 1 + c.depth - c.stage : 1));
  });
}

TEST_CASE("xpipe keeps one prediction for the forwards of an update and one for its backwards") {
  // Its horizon forward is never 0 when D > 1, even on the last stage. With T = 1 the two are never there at a time.
  for_all([](const Case& c) {
    const int backward = (c.each + c.stage / 2 - 1) / c.each;
    CHECK(buffers(c, test::policy("xpipe")) == (c.each > 1 && backward > 0 ? 3 : 2));
  });
}

TEST_CASE("reconstruction keeps the average, and the weights it makes, if a backward is late") {
  for_all([](const Case& c) {
    for (const char* name : {"pipemare", "layerpipe2"})
      CHECK(buffers(c, test::policy(name)) == (c.delay() > 0 ? 3 : 1));
  });
}

TEST_CASE("a run too short for the steady state needs less") {
  const Plan plan = chain_plan(4, 4, 1);
  const auto first_stage = [&](int iterations) {
    return WeightReads(test::build("pipedream", plan, iterations), plan, test::policy("stash"))
        .needs(StageId{0}, 0)
        .buffers;
  };
  CHECK(first_stage(1) == 1);
  CHECK(first_stage(2) == 2);
  CHECK(first_stage(20) == 4);
}

}  // namespace stagecraft::buffers_test
