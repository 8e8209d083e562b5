// Sums of gradients over links that are slower than those between the first two nodes, without simulated messages.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft::slow_links_test {
namespace {

/// Eight devices at two sites, with a link of this rate between the sites.
std::vector<std::string> at_two_sites(const std::string& rate, const std::string& plan) {
  return {
      "software=plain",
      "model={builder: transformer, kind: gpt, layers: 8, hidden: 512, heads: 8, sequence: 128, vocabulary: 1024}",
      "cluster={generator: wan, sites: [{name: a, devices: 4, type: a100-80}, {name: b, devices: 4, type: a100-80}], "
      "wan: far, links: {lan: {bandwidth: 25 GB/s, latency: 1 us}, far: {bandwidth: " +
          rate + ", latency: 1 us}}}",
      "plan=" + plan, "run={schedule: 1f1b, micro_batches: 4}"};
}

CompiledExperiment compiled(std::vector<std::string> sets) {
  return compile(load_experiment("scenarios/examples/quickstart.yaml", std::move(sets)));
}

const std::string kReplicas = "{planner: balanced, stages: 1, replicas: 8, micro_batch_size: 1}";

}  // namespace

TEST_CASE("gradients of replicas at two sites take what the link between the sites carries") {
  const CompiledExperiment c = compiled(at_two_sites("1 GB/s", kReplicas));
  const Reduction& sum = c.plan.reductions.front();
  // A ring of 8 carries 7/8 of the array twice over each of its links (Patarasuk and Yuan 2009), and takes at least the
  // latency of the way through two local links and the one between the sites.
  CHECK(sum.cost->value == doctest::Approx(2 * 7 / 8.0 * sum.bytes.value / 1e9 + 3e-6).epsilon(1e-9));
}

TEST_CASE("a link between sites that is not slower than those inside of them changes nothing") {
  const auto cost = [](const std::string& rate) {
    return compiled(at_two_sites(rate, kReplicas)).plan.reductions.front().cost->value;
  };
  CHECK(cost("100 GB/s") == cost("1000 GB/s"));
  CHECK(cost("1 GB/s") > 10 * cost("100 GB/s"));
}

TEST_CASE("tied weights and divided states at two sites take as long as their messages, within three percent") {
  for (const std::string plan :
       {"{planner: balanced, stages: 8, micro_batch_size: 1}", kReplicas.c_str(),
        "{planner: balanced, stages: 1, replicas: 8, micro_batch_size: 1, shard: optimizer}"}) {
    std::vector<std::string> sets = at_two_sites("1 GB/s", plan);
    const double by_cost = run(compiled(sets), "fluid").report.period.value;
    sets.emplace_back("run.collectives=flows");
    CAPTURE(plan);
    CHECK(by_cost == doctest::Approx(run(compiled(sets), "fluid").report.period.value).epsilon(0.03));
  }
}

}  // namespace stagecraft::slow_links_test
