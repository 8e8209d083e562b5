#include <doctest/doctest.h>

#include "tests/support/road.hpp"

namespace stagecraft::memory_test {
namespace {

constexpr double kGiB = 1 << 30;

StageCost sized(double weights, double stash) {
  StageCost cost = test::times(1, 1);
  cost.memory.weights = cost.memory.gradients = Bytes{weights / 4};
  cost.memory.optimizer = Bytes{weights / 2};
  cost.memory.stash = Bytes{stash};
  return cost;
}

Cluster cluster_with(double memory, int devices = 2) {
  Cluster cluster = test::star(devices, 1e9, 0);
  cluster.types[DeviceTypeId{0}].name = "gpu";
  cluster.types[DeviceTypeId{0}].memory = Bytes{memory};
  return cluster;
}

/// The message of the Infeasible error with code "memory", or nothing.
std::string refusal(const Program& program, const Cluster& cluster) {
  try {
    check_memory(program, cluster);
  } catch (const Infeasible& error) {
    CHECK(error.code() == "memory");
    return error.what();
  }
  return {};
}

bool says(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("a refusal names the device that lacks most, its peak and the parts of the peak") {
  const Plan plan = test::dag_plan(2, 4, {{0, 1}}, 0);
  const Program program = test::program_of("gpipe", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB)));
  CHECK(refusal(program, cluster_with(8 * kGiB)).empty());  // 4 GiB and four activations of 1 GiB, exactly
  const std::string text = refusal(program, cluster_with(6.5 * kGiB));
  CAPTURE(text);
  CHECK(says(text, "d0 needs 8 GiB at 0F3, but has 6.5 GiB (1.5 GiB too much)"));
  CHECK(says(text, "weights 1 GiB, gradients 1 GiB, optimizer state 2 GiB, activations 4 GiB"));
  CHECK(says(text, "recompute: full"));
  CHECK(says(refusal(program, cluster_with(8 * kGiB - 1)), "at 0F3"));
}

TEST_CASE("a model that does not fit without activations is refused") {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 0);
  const std::string text =
      refusal(test::program_of("gpipe", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB))), cluster_with(2 * kGiB));
  CAPTURE(text);
  CHECK(says(text, "d0 needs 4 GiB for the model alone, but has 2 GiB (2 GiB too much)"));
  CHECK(says(text, "2.00 times the device"));
}

TEST_CASE("a schedule with fewer micro-batches in flight fits where gpipe does not") {
  const Plan plan = test::dag_plan(2, 4, {{0, 1}}, 0);
  const Cluster cluster = cluster_with(6 * kGiB);
  CHECK_FALSE(
      refusal(test::program_of("gpipe", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB))), cluster).empty());
  CHECK(refusal(test::program_of("1f1b", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB))), cluster).empty());
  LoweringOptions steady;
  steady.iterations = 3;
  CHECK_FALSE(refusal(test::program_of("2bw", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB)), steady), cluster)
                  .empty());  // + 1 GiB
}

TEST_CASE("recomputation fits where the stash does not") {
  Plan plan = test::dag_plan(1, 4, {});
  StageCost cost = sized(4 * kGiB, 1 * kGiB);
  cost.memory.stash = Bytes{0.125 * kGiB}, cost.memory.recompute_stash = Bytes{0.875 * kGiB};
  const Cluster cluster = cluster_with(5.5 * kGiB, 1);
  CHECK_FALSE(refusal(test::program_of("gpipe", plan, uniform_costs(plan, cost)), cluster).empty());
  plan.stages[StageId{0}].shape.recomputation = Recomputation::Full;
  CHECK(refusal(test::program_of("gpipe", plan, uniform_costs(plan, cost)), cluster).empty());
}

TEST_CASE("the message that an op uses counts in addition to the stash") {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 1 * kGiB);
  const Program program = test::program_of("gpipe", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB)));
  CHECK(refusal(program, cluster_with(6 * kGiB)).empty());
  const std::string text = refusal(program, cluster_with(5.9 * kGiB));
  CHECK(says(text, "d1 needs 6 GiB at 1F0"));
}

TEST_CASE("the device that is short is named, and a device without a figure is not checked") {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 0);
  Cluster cluster = cluster_with(0);
  const Program program = test::program_of("gpipe", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB)));
  CHECK(refusal(program, cluster).empty());
  cluster.types.push_back(cluster.types.front());
  cluster.types[DeviceTypeId{1}].name = "small";
  cluster.types[DeviceTypeId{1}].memory = Bytes{4.5 * kGiB};
  cluster.devices[DeviceId{1}].type = DeviceTypeId{1};
  CHECK(says(refusal(program, cluster), "d1 needs 5 GiB at 1F0, but has 4.5 GiB (512 MiB too much)"));
}

TEST_CASE("the memory check finds the same peak with any communication") {
  const Plan plan = test::dag_plan(3, 8, {{0, 1}, {1, 2}}, 0.125 * kGiB);
  for (const bool overlap : {true, false})
    for (const bool rendezvous : {true, false}) {
      LoweringOptions options;
      options.overlap = overlap;
      options.rendezvous = rendezvous;
      const Program program = test::program_of("1f1b", plan, uniform_costs(plan, sized(4 * kGiB, 1 * kGiB)), options);
      CHECK(refusal(program, cluster_with(7.125 * kGiB, 3)).empty());  // three activations and one message
      CHECK(says(refusal(program, cluster_with(6.9 * kGiB, 3)), "d0 needs 7.125 GiB at 0B0"));
    }
}

}  // namespace stagecraft::memory_test
