// No simulation is shorter than the bound of its plan, with all that a device waits for between two iterations.

#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "tests/support/plan_bounds.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::work_bound_test {
namespace {

using Strings = std::vector<std::string>;

std::string number(int n) { return std::to_string(n); }

/// Layers with many parameters on devices with slow links, so that sums of gradients are long.
Strings random_chain(Rng& rng, int chunks) {
  std::string widths = number(64 * rng.integer(1, 16));
  for (int l = rng.integer(3, 8); l > 0; --l) widths += ", " + number(64 * rng.integer(1, 16));
  const int ranks = rng.integer(1, 4), replicas = rng.integer(1, 4), slow = rng.integer(0, 1) * rng.integer(0, 2);
  std::string groups = "{name: a, count: " + number(ranks * replicas) + ", type: fast, link: wire}";
  if (slow > 0) groups += ", {name: b, count: " + number(slow) + ", type: slow, link: wire}";
  return {"model={builder: mlp, widths: [" + widths + "]}",
          "cluster={generator: star, groups: [" + groups +
              "], types: {fast: {peak: 2 TFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s, busy: 300 W, idle: 90 W}, "
              "slow: {peak: 1 TFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s, busy: 100 W, idle: 40 W}}, links: "
              "{wire: {bandwidth: " +
              number(rng.integer(1, 40)) + " GB/s, latency: " + number(rng.integer(0, 20)) + " us}}}",
          "plan={planner: balanced, stages: " + number(ranks * chunks) + ", replicas: " + number(replicas) +
              ", micro_batch_size: " + number(replicas * rng.integer(1, 3)) +
              (rng.integer(0, 3) == 0 ? ", recompute: full}" : "}"),
          "run.micro_batches=" + number(rng.integer(1, 9))};
}

Strings random_groups(Rng& rng, int chunks) {
  const int tensor = 1 << rng.integer(0, 1), ranks = 1 << rng.integer(0, 2), replicas = 8 / tensor / ranks,
            size = rng.integer(1, 3);
  const Strings shards = {"none", "optimizer", "gradients", "weights"}, software = {"plain", "torchtitan"};
  const std::string shard = replicas > 1 ? shards[rng.integer(0, 3)] : "none";
  return {"model={builder: transformer, kind: gpt, layers: " + number(rng.integer(4, 8)) + ", hidden: " +
              number(256 * rng.integer(1, 4)) + ", heads: 4, sequence: 512, vocabulary: 1024, precision: mixed}",
          "cluster={base: superpod-h100-256, override: {nodes: 2, gpus: 4}}",
          "plan={planner: balanced, stages: " + number(ranks * chunks) + ", replicas: " + number(replicas) +
              ", micro_batch_size: " + number(size) + ", group: {tensor: " + number(tensor) +
              ", sequence: " + (tensor > 1 ? "true" : "false") + "}, shard: " + shard + "}",
          "software=" + (rng.integer(0, 1) == 0 ? std::string("megatron-no-overlap") : software[rng.integer(0, 1)]),
          "run.global_batch=" + number(size * replicas * rng.integer(1, 8)),
          std::string("run.collectives=") + (rng.integer(0, 2) == 0 ? "flows" : "cost")};
}

}  // namespace

TEST_CASE("no order of work has a shorter period than the bound of its plan, with replicas") {
  Rng rng(23, "bounds of chains");
  const std::vector<std::pair<std::string, int>> schedules = {
      {"1f1b", 1},   {"gpipe", 1},       {"zb-h1", 1},       {"zb-h2", 1},          {"eager-1f1b", 1},
      {"zb-2p", 1},  {"interleaved", 2}, {"interleaved", 3}, {"interleaved-zb", 2}, {"looped-bfs", 2},
      {"zb-v", 2},   {"v-half", 2},      {"v-min", 2},       {"1f1b-v", 2},         {"zb-v-auto", 2},
      {"hanayo", 2}, {"synthesised", 1}, {"chimera", 1},     {"dualpipe", 1},       {"dualpipev", 2},
      {"gems", 1},   {"pipedream", 1},   {"2bw", 1}};
  int ran = 0, replicated = 0;
  double shares = 0;
  for (int trial = 0; trial < (test::all_trials() ? 2000 : 200); ++trial) {
    CAPTURE(trial);
    const auto& [schedule, chunks] = schedules[rng.integer(0, static_cast<int>(std::ssize(schedules)) - 1)];
    const test::BoundRatio ratio =
        test::compare_with_bounds("scenarios/examples/quickstart.yaml", random_chain(rng, chunks), schedule);
    ran += ratio.ran;
    if (ratio.replicated) ++replicated, shares += ratio.share;
  }
  CHECK(ran > 100);
  CHECK(replicated > 50);
  CHECK(shares / replicated > 0.75);  // It is no bound of little use.
}

TEST_CASE("no order of work has a shorter period than the bound of its plan, with groups and divided states") {
  Rng rng(24, "bounds of groups");
  int ran = 0;
  for (int trial = 0; trial < (test::all_trials() ? 1000 : 100); ++trial) {
    CAPTURE(trial);
    const int chunks = rng.integer(1, 2);
    ran += test::compare_with_bounds("scenarios/examples/search-groups.yaml", random_groups(rng, chunks),
                                     chunks == 1 ? "1f1b" : "interleaved")
               .ran;
  }
  CHECK(ran > 50);
}

TEST_CASE("with room for few stashes, a micro-batch goes through the chain and back in turn with others") {
  const auto bound = [](const std::string& memory) {
    const Experiment e =
        load_experiment("scenarios/examples/quickstart.yaml",
                        {"model={builder: uniform, layers: 2, forward: 1 ms, backward: 2 ms, stash: 1 GiB}",
                         "cluster={generator: uniform, devices: 2, type: any, link: {bandwidth: 1000 TB/s, latency: 0 "
                         "s}, types: {any: {peak: 1 "
                         "TFLOP/s, memory: " +
                             memory + ", memory_bandwidth: 100 GB/s}}}",
                         "plan={planner: balanced, stages: 2}", "run.micro_batches=8"});
    return plan_bound(plan_experiment(e), LinkCollectives(e.cluster)).unsplit.value;
  };
  // 1 ms, 1 + 2 ms on the second stage and 2 ms hold the only stash of the first: 8 x 6 ms.
  CHECK(bound("1 GiB") == doctest::Approx(48e-3).epsilon(1e-9));
  CHECK(bound("1.5 GiB") == doctest::Approx(32e-3).epsilon(1e-9));
  // With more room, work and the wait for the first and the last micro-batch count: 8 x 3 + 3 ms.
  CHECK(bound("8 GiB") == doctest::Approx(27e-3).epsilon(1e-9));
}

TEST_CASE("the bound of replicas of one stage is the period") {
  const test::BoundRatio ratio = test::compare_with_bounds(
      "scenarios/examples/quickstart.yaml",
      {"model={builder: mlp, widths: [512, 1024, 1024, 512]}",
       "cluster={generator: star, groups: [{name: a, count: 8, type: fast, link: wire}], types: {fast: {peak: 2 "
       "TFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s, busy: 300 W, idle: 90 W}}, links: {wire: {bandwidth: 1 "
       "GB/s, latency: 5 us}}}",
       "plan={planner: balanced, stages: 1, replicas: 8, micro_batch_size: 8}", "run.micro_batches=4"},
      "1f1b");
  REQUIRE(ratio.ran);
  CHECK(ratio.share == doctest::Approx(1).epsilon(1e-9));
}

}  // namespace stagecraft::work_bound_test
