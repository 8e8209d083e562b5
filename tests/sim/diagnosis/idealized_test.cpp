// What a diagnosis simulates: the program without some costs, each time from the whole one, and changed scenarios of
// which only times and memory are measured.

#include "sim/diagnosis/idealized.hpp"

#include <doctest/doctest.h>

#include "sim/experiment/order_evaluation.hpp"

namespace stagecraft::idealized_test {
namespace {

/// Uneven stages on devices of two types; and replicas with groups, whose sums and exchanges are instructions.
const std::vector<std::vector<std::string>> kScenarios = {
    {},
    {"cluster={base: superpod-h100-256, override: {nodes: 4}}", "software=megatron-core", "model=llama-3-8b",
     "plan={planner: balanced, stages: 4, replicas: 4, group: {tensor: 2}, shard: optimizer, micro_batch_size: 1}",
     "run.micro_batches=8"}};

constexpr Cost kCosts[] = {Cost::Messages, Cost::UnequalStages, Cost::GradientSums | Cost::GroupCollectives, Cost{}};

}  // namespace

TEST_CASE("costs are removed from the whole program, whatever was removed before") {
  for (const std::vector<std::string>& sets : kScenarios) {
    CompiledExperiment c = compile(load_experiment("examples/quickstart", sets));
    const Outcome o = run(c, "fluid");
    IdealizedRuns one_by_one(c, o, "fluid");
    for (const Cost cost : kCosts) {
      CAPTURE(static_cast<int>(cost));
      CHECK(one_by_one.without(cost) == IdealizedRuns(c, o, "fluid").without(cost));
      CHECK(one_by_one.busiest(cost) == IdealizedRuns(c, o, "fluid").busiest(cost));
    }
    CHECK(one_by_one.without(Cost::Messages) < one_by_one.without(Cost{}));
    const Timeline again = run(c, "fluid").timeline;  // The program has its costs again.
    CHECK(again.start == o.timeline.start);
    CHECK(again.end == o.timeline.end);
  }
}

TEST_CASE("a run of which nothing is removed is not simulated again, and has the same period") {
  for (const std::vector<std::string>& sets : kScenarios) {
    CompiledExperiment c = compile(load_experiment("examples/quickstart", sets));
    const Outcome o = run(c, "fluid");
    IdealizedRuns cached(c, o, "fluid"), simulated(c, o, "simgrid");  // For `simgrid` `fluid` takes its place.
    CHECK(cached.without(Cost{}) == simulated.without(Cost{}));
    CHECK(cached.busiest(Cost{}) == simulated.busiest(Cost{}));
  }
}

TEST_CASE("what runs are compared by is what the whole report says") {
  for (const std::vector<std::string>& sets : kScenarios)
    for (const char* backend : {"ideal", "fluid"}) {
      const CompiledExperiment c = compile(load_experiment("examples/quickstart", sets));
      const Report whole = run(c, backend).report, brief = run_to_compare(c, backend).report;
      CHECK(brief.makespan == whole.makespan);
      CHECK(brief.period == whole.period);
      CHECK(brief.throughput == whole.throughput);
      CHECK(brief.steady_bubble == whole.steady_bubble);
      CHECK(brief.energy == whole.energy);
      REQUIRE(brief.devices.size() == whole.devices.size());
      for (const DeviceId d : whole.devices.ids()) {
        const MemoryPeak &a = brief.devices[d].memory, &b = whole.devices[d].memory;
        CHECK(a.total == b.total);
        CHECK(a.capacity == b.capacity);
        CHECK(a.at == b.at);
      }
    }
}

}  // namespace stagecraft::idealized_test
