// Collectives of divided state and of experts wait for the slowest link between their devices, also where they are
// priced by shape.

#include <doctest/doctest.h>

#include <string>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::links_in_passes_test {
namespace {

constexpr const char* kExperts = "{base: qwen3-30b-a3b, override: {layers: 4}}";

/// Three sites, of which the third is behind a slow link. What is known by shape is the link between the first two.
Experiment three_sites(const std::string& plan, const std::string& wan, const std::string& model = "gpt-1.3b",
                       const std::string& run = "", const char* software = "megatron-no-overlap") {
  const std::string file = test::own_file("slow-links.yaml", fmt::format(R"(schema: scenario/2
title: three sites
model: {}
software: {}
plan: {{planner: balanced, stages: 1, {}}}
run: {{schedule: 1f1b, micro_batches: 2{}}}
cluster:
  generator: wan
  sites:
    - {{name: paris, devices: 2, type: a100-80}}
    - {{name: lyon, devices: 2, type: a100-80}}
    - {{name: tokyo, devices: 4, type: a100-80}}
  links:
    lan: {{bandwidth: 400 Gbit/s, latency: 2 us}}
    near: {{bandwidth: 800 Gbit/s, latency: 5 us}}
    wan: {{bandwidth: {}, latency: 5 ms}}
  pairs:
    - {{between: [paris, lyon], link: near}}
)",
                                                                         model, software, plan, run, wan));
  Experiment e = load_experiment(file, {});
  return e;
}

double period(const Experiment& e) { return run(compile(e), "ideal").report.period.value; }

}  // namespace

TEST_CASE("gathers of weights and sums of gradients in each pass take what a slow link between sites permits") {
  for (const char* shard : {"weights", "gradients", "optimizer"}) {
    const std::string plan = fmt::format("replicas: 8, shard: {}", shard);
    const double fast = period(three_sites(plan, "800 Gbit/s")), slow = period(three_sites(plan, "100 Mbit/s")),
                 slower = period(three_sites(plan, "10 Mbit/s")),
                 flows = period(three_sites(plan, "100 Mbit/s", "gpt-1.3b", ", collectives: flows"));
    CAPTURE(shard);
    CHECK(slow > 10 * fast);
    CHECK(slower == doctest::Approx(10 * slow).epsilon(0.05));
    CHECK(slow < 1.05 * flows);  // A bound, whatever the algorithm.
    CHECK(slow > 0.4 * flows);
  }
}

TEST_CASE("a stack hides a sum of gradients behind the computation that there is, and no more") {
  const auto seconds = [](const char* software) {
    return period(three_sites("replicas: 8", "10 Mbit/s", "gpt-1.3b", "", software));
  };
  CHECK(seconds("megatron-core") > 0.95 * seconds("plain"));
}

TEST_CASE("groups inside a site take what they took") {
  const std::string plan = "replicas: 1, group: {tensor: 4}";
  CHECK(period(three_sites(plan, "800 Gbit/s")) == period(three_sites(plan, "10 Mbit/s")));
}

TEST_CASE("exchanges of experts wait for a slow link between sites") {
  const std::string plan = "replicas: 8, group: {expert: 8}";
  const double fast = period(three_sites(plan, "800 Gbit/s", kExperts)),
               slow = period(three_sites(plan, "100 Mbit/s", kExperts));
  CHECK(slow > 10 * fast);
}

TEST_CASE("a plan is priced with other types of devices, or with equal links, where it stands") {
  const CompiledExperiment c = compile(three_sites("replicas: 8, group: {expert: 8}", "100 Mbit/s", kExperts));
  const CostTable& table = *c.experiment.costs;
  const auto forward = [](const StageCosts& costs) { return costs.at(StageId{0}, 0).forward.value; };
  const auto same = [](DeviceId) { return DeviceTypeId{0}; };
  CHECK(forward(stage_costs(c.plan, table, {.type_of = same})) == forward(c.costs));
  CHECK(forward(c.costs) > 2 * forward(stage_costs(c.plan, table, {.equal_links = true})));
}

TEST_CASE("what a pair hides of an exchange over a slow link is a share of what the op waits for") {
  const CompiledExperiment c =
      compile(three_sites("replicas: 8, group: {expert: 8}", "100 Mbit/s", kExperts, "", "deepseek-v3"));
  const StageCost& cost = c.costs.at(StageId{0}, 0);
  REQUIRE(cost.written() == Written::Exchanges);
  CHECK(exposed_on(Axis::Expert, cost.collectives->passes.forward).value ==
        doctest::Approx(cost.passes.forward.expert.value).epsilon(1e-9));
  CHECK(times_in_op(cost).forward.value + cost.passes.forward.expert.value ==
        doctest::Approx(cost.forward.value).epsilon(1e-9));
}

}  // namespace stagecraft::links_in_passes_test
