#include "sim/plan/plan_words.hpp"

#include <doctest/doctest.h>

namespace stagecraft::plan_words_test {
namespace {

/// Stages one after the other, each with `replicas` groups of devices that no other stage has.
Plan plan_of(int stages, int replicas, const Degrees& group, int micro_batch_size, int mini_batch) {
  Plan plan = chain_plan(stages, stages, 1);
  plan.mini_batch = mini_batch;
  int next = 0;
  for (Stage& stage : plan.stages) {
    stage.shape.degrees = group;
    stage.micro_batch_size = micro_batch_size;
    std::vector<DeviceId> devices;
    for (int d = 0; d < replicas * group.group(); ++d) devices.push_back(DeviceId{next++});
    stage.place_on(devices);
  }
  return plan;
}

}  // namespace

TEST_CASE("a plan is written as training frameworks count it, without degrees of 1") {
  CHECK(plan_line(chain_plan(4, 4, 8), 0) == "PP 4 · MBS 1 x 8 = 8 samples");
  CHECK(plan_line(chain_plan(1, 1, 1), 512) == "PP 1 · MBS 1 x 1 = 1 sample of 512 tokens");
  CHECK(plan_line(plan_of(8, 8, {.tensor = 4}, 8, 1024), 8192) ==
        "TP 4 · PP 8 · DP 8 · MBS 1 x 128 = 1,024 samples of 8,192 tokens");
  CHECK(plan_words(plan_of(2, 2, {.context = 2, .tensor = 2, .expert = 4}, 8, 16)) ==
        "TP 2 · CP 2 · EP 4 · PP 2 · DP 2 · MBS 4 x 2");
}

TEST_CASE("several stages on a rank are virtual stages where all ranks have equally many") {
  CHECK(plan_words(chain_plan(8, 4, 8)) == "PP 4 x VPP 2 · MBS 1 x 8");
  CHECK(plan_words(chain_plan(6, 4, 8)) == "PP 4, 6 stages · MBS 1 x 8");
}

TEST_CASE("a stage and the copy of its weights that runs other micro-batches are one stage") {
  Plan plan = chain_plan(4, 4, 8);
  for (int s = 0; s < 4; ++s) {
    Stage copy = plan.stages[StageId{s}];
    copy.twin = StageId{s};
    copy.place_on({DeviceId{3 - s}});
    plan.stages[StageId{s}].twin = plan.stages.push_back(copy);
  }
  CHECK(plan_words(plan) == "PP 4 · MBS 1 x 8");
}

TEST_CASE("what stages do not share comes stage by stage, and of many stages as a range") {
  Plan plan = plan_of(2, 3, {}, 6, 48);
  plan.stages[StageId{1}].place_on({DeviceId{3}});
  CHECK(plan_words(plan) == "PP 2 · DP 3-1 · micro-batches of 6 x 8");
  for (Stage& stage : plan.stages) stage.share = Share::MicroBatches, stage.micro_batch_size = 1;
  CHECK(plan_words(plan) == "PP 2 · DP 3-1 · micro-batches of 1 x 48");

  Plan sharded = plan_of(2, 4, {}, 4, 16);
  for (Stage& stage : sharded.stages) stage.shape.sharding = StateSharding::Gradients;
  CHECK(plan_words(sharded) == "PP 2 · DP 4 · ZeRO-2 · MBS 1 x 4");

  Plan many = plan_of(6, 2, {}, 2, 16);
  many.stages[StageId{5}].place_on({DeviceId{10}});
  CHECK(plan_words(many) == "PP 6 · DP 1 to 2 · micro-batches of 2 x 8");
}

TEST_CASE("replicas that take micro-batches in turn each run their part of them") {
  Plan plan = plan_of(2, 3, {}, 1, 6);
  for (Stage& stage : plan.stages) stage.share = Share::MicroBatches;
  CHECK(plan_line(plan, 0) == "PP 2 · DP 3 · MBS 1 x 2 = 6 samples");
}

}  // namespace stagecraft::plan_words_test
