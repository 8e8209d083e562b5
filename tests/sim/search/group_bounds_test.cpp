// No simulated plan is below its bound: random scenarios with groups, pairs that hide exchanges, divided states,
// buckets, slow links and mixed device types, whose collectives have a cost or are messages.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "tests/support/plan_bounds.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::group_bounds_test {
namespace {

using Strings = std::vector<std::string>;

template <class List>
const auto& one_of(Rng& rng, const List& list) {
  return *(std::begin(list) + rng.integer(0, static_cast<int>(std::size(list)) - 1));
}

int power_of_two(Rng& rng, int limit) {
  int exponent = 0;
  while (2 << exponent <= limit) ++exponent;
  return 1 << rng.integer(0, exponent);
}

struct Order {
  const char* schedule;
  int chunks;
  const char* options = "";
};

/// Joint ops of a forward and a backward come often, because only they hide exchanges.
Order random_order(Rng& rng) {
  static constexpr Order kOrders[] = {{"1f1b", 1},
                                      {"gpipe", 1},
                                      {"zb-h1", 1},
                                      {"eager-1f1b", 1},
                                      {"interleaved", 2},
                                      {"zb-v", 2},
                                      {"interleaved-zb", 2},
                                      {"hanayo", 2},
                                      {"chimera", 1},
                                      {"gems", 1},
                                      {"dualpipe", 1},
                                      {"dualpipe", 1},
                                      {"dualpipev", 2},
                                      {"dualpipev", 2},
                                      {"stp", 2},
                                      {"stp", 2},
                                      {"interleaved", 2, "overlap_moe: true"},
                                      {"interleaved", 2, "overlap_moe: true"},
                                      {"synthesised", 1, "effort: 0.05"},
                                      {"synthesised", 1, "placement: bidirectional, effort: 0.05"}};
  return one_of(rng, kOrders);
}

/// Nodes of equal GPUs; sites of single GPUs, one of which may have a slow network; or nodes of two types.
std::string random_cluster(Rng& rng, int devices) {
  const char* const type = one_of(rng, std::initializer_list<const char*>{"h100-sxm", "a100-80", "b200"});
  const char* const speed = one_of(rng, std::initializer_list<const char*>{"4 Gbit/s", "40 Gbit/s", "400 Gbit/s"});
  switch (rng.integer(0, 2)) {
    case 0: {
      const int gpus = std::min(devices, power_of_two(rng, 8));
      return fmt::format("{{base: superpod-h100-256, override: {{nodes: {}, gpus: {}}}}}", devices / gpus, gpus);
    }
    case 1:
      return fmt::format(
          "{{generator: wan, types: {{a: {{preset: h100-sxm}}, b: {{preset: {}}}}}, sites: [{{name: west, type: a, "
          "devices: {}}}, {{name: east, type: b, devices: {}, lan: slow}}], links: {{lan: {{bandwidth: 400 Gbit/s, "
          "latency: 5 us}}, slow: {{bandwidth: {}, latency: 5 us}}, wan: {{bandwidth: 100 Gbit/s, latency: 20 us}}}}}}",
          type, devices / 2, devices - devices / 2, speed);
    default: {
      const int gpus = std::min(devices / 2, power_of_two(rng, 4));
      return fmt::format(
          "{{generator: nvlink_pods, nodes: [{{name: n, count: {0}, gpus: {1}, type: h100-sxm, inside: nvswitch}}, "
          "{{name: m, count: {0}, gpus: {1}, type: {2}, inside: nvswitch}}], links: {{nvlink: {{bandwidth: 200 GB/s, "
          "latency: 1 us}}, nic: {{bandwidth: {3}, latency: 2 us}}}}}}",
          devices / 2 / gpus, gpus, type, speed);
    }
  }
}

std::string random_model(Rng& rng, int experts, int chunks) {
  const int layers = rng.integer(4, 6) * chunks, hidden = 512 * rng.integer(1, 4), active = rng.integer(1, 2),
            width = 256 * rng.integer(1, 8);
  const int sequence = one_of(rng, std::initializer_list<int>{512, 2048}),
            vocabulary = one_of(rng, std::initializer_list<int>{1024, 32000});
  const bool shared = rng.integer(0, 1) == 0, uneven = rng.integer(0, 3) == 0;
  const std::string routed =
      experts == 1 ? ""
                   : fmt::format(", experts: {{count: {}, active: {}, width: {}{}{}}}", 2 * experts, active, width,
                                 shared ? ", shared: 1" : "", uneven ? ", imbalance: 1.5" : "");
  return fmt::format(
      "{{builder: transformer, kind: gpt, layers: {}, hidden: {}, heads: 8, sequence: {}, vocabulary: {}, precision: "
      "mixed{}}}",
      layers, hidden, sequence, vocabulary, routed);
}

/// The devices of a stage, and how they divide it.
std::string random_plan(Rng& rng, int stages, int ranks, int devices, int& replicas, int& size, int& expert) {
  const Strings states = {"none", "optimizer", "gradients", "weights", "{state: weights, reshard: true}"};
  const Strings recomputes = {"none", "none", "none", "selective", "full", "layers", "half", "outputs"};
  const int each = devices / ranks, tensor = power_of_two(rng, std::min(4, each)),
            context = power_of_two(rng, std::min(2, each / tensor));
  replicas = each / tensor / context, size = rng.integer(1, 3);
  expert = rng.integer(0, 3) == 0 ? 1 : power_of_two(rng, each);
  const int expert_tensor = expert > 1 && rng.integer(0, 2) == 0 ? power_of_two(rng, each / expert) : 1;
  const bool sequence = tensor > 1 && rng.integer(0, 3) > 0, shared_overlap = rng.integer(0, 2) == 0;
  const std::string recompute = one_of(rng, recomputes), state = replicas * context > 1 ? one_of(rng, states) : "none";
  return fmt::format(
      "{{planner: balanced, stages: {}, replicas: {}, micro_batch_size: {}, recompute: {}, shard: {}, group: {{tensor: "
      "{}, sequence: {}, context: {}, expert: {}, expert_tensor: {}, dispatcher: {}, shared_overlap: {}}}}}",
      stages, replicas, size, recompute, state, tensor, sequence, context, expert, expert_tensor,
      rng.integer(0, 2) == 0 ? "per_node" : "alltoall", shared_overlap);
}

/// How the program runs: collectives, buckets, what is unfolded, messages, and devices that are slow for a while.
void add_run(Rng& rng, Strings& settings) {
  const bool flows = rng.integer(0, 2) == 0;
  settings.push_back(std::string("run.collectives=") + (flows ? "flows" : "cost"));
  settings.push_back(std::string("run.gradient_buckets=") + (rng.integer(0, 2) == 0 ? "10 MB" : "none"));
  settings.push_back("run.detail=" + one_of(rng, Strings{"ops", "ops", "layers", "devices"}));
  settings.push_back("run.sends=" + one_of(rng, Strings{"fifo", "fifo", "shared"}));
  settings.push_back("run.transfers=" + one_of(rng, Strings{"rendezvous", "eager"}));
  if (!flows && rng.integer(0, 5) == 0) settings.emplace_back("run.overlap=false");
  if (rng.integer(0, 7) == 0) settings.emplace_back("cluster.jitter={most: 30 %}");
  if (rng.integer(0, 7) == 0) settings.emplace_back("cluster.changes=[{share: 30 %, speed: 60 %}]");
}

/// Two directions need two ranks, and pairs twice as many micro-batches as there are stages.
Strings random_settings(Rng& rng, const Order& order) {
  const std::string schedule = order.schedule;
  const Strings stacks = {"deepseek-v3",         "deepseek-v3", "megatron-bridge", "megatron-bridge",
                          "megatron-no-overlap", "plain",       "torchtitan",      "megatron-bridge-overlap"};
  const int pairs = schedule.starts_with("dualpipe") || schedule == "chimera" ? 2 : 1;
  const int devices = one_of(rng, std::initializer_list<int>{4, 8, 8, 16}),
            ranks = pairs * power_of_two(rng, 4 / pairs);
  const int micro_batches = pairs == 1 ? rng.integer(1, 10) : pairs * ranks * rng.integer(1, 3);
  int replicas = 1, size = 1, expert = 1;
  const std::string plan = random_plan(rng, ranks * order.chunks, ranks, devices, replicas, size, expert);
  Strings settings = {"model=" + random_model(rng, expert, order.chunks), "cluster=" + random_cluster(rng, devices),
                      "plan=" + plan, "software=" + one_of(rng, stacks),
                      fmt::format("run.global_batch={}", size * replicas * micro_batches)};
  add_run(rng, settings);
  return settings;
}

}  // namespace

TEST_CASE("no simulated plan is below its bound, with groups, pairs, flows and buckets") {
  Rng rng(47, "bounds of plans");
  const int trials = test::trials(5000, 500);
  int ran = 0, groups = 0, pairs = 0, flows = 0, buckets = 0;
  for (int trial = 0; trial < trials; ++trial) {
    CAPTURE(trial);
    const Order order = random_order(rng);
    const test::BoundRatio ratio = test::compare_with_bounds(
        "scenarios/examples/search-groups.yaml", random_settings(rng, order), order.schedule, order.options, true);
    ran += ratio.ran;
    groups += ratio.has_groups, pairs += ratio.has_pairs, flows += ratio.has_flows, buckets += ratio.has_buckets;
  }
  MESSAGE(ran, " ran: ", groups, " with groups, ", pairs, " with pairs that hide exchanges, ", flows,
          " whose collectives are messages, ", buckets, " with buckets of gradients");
  CHECK(2 * ran > trials);
  for (const int count : {groups, pairs, flows, buckets}) CHECK(20 * count > ran);
}

// The bound was 3.543 s, and this plan, which the search finds, takes 3.493 s.
TEST_CASE("pairs of DualPipe that hide exchanges of experts are not shorter than the bound of their plan") {
  const test::BoundRatio ratio = test::compare_with_bounds(
      "scenarios/examples/search-groups.yaml",
      {"model={base: mixtral-8x7b, override: {layers: 8, sequence: 4096}}",
       "cluster={generator: star, groups: [{name: a, count: 16, type: h100-sxm, link: wire}], links: {wire: "
       "{bandwidth: 400 Gbit/s, latency: 5 us}}}",
       "software=deepseek-v3", "run.global_batch=256",
       "plan={planner: balanced, stages: 2, replicas: 8, micro_batch_size: 2, group: {expert: 8}, shard: optimizer}"},
      "dualpipe", "", true);
  REQUIRE(ratio.ran);
  CHECK(ratio.has_pairs);
  CHECK(ratio.share > 0.9);  // It is no bound of little use.
}

// One micro-batch through all layers on one device takes 0.87 s; this plan takes 0.19 s.
TEST_CASE("the bound of the table of plans knows that a tensor group is faster than one device") {
  const test::BoundRatio ratio = test::compare_with_bounds(
      "scenarios/examples/search-groups.yaml",
      {"model=llama-3-8b", "cluster={base: superpod-h100-256, override: {nodes: 1, gpus: 8}}", "run.global_batch=1",
       "plan={planner: balanced, stages: 1, replicas: 1, group: {tensor: 8, sequence: true}}"},
      "1f1b");
  CHECK(ratio.ran);
}

TEST_CASE("two copies of a layer that takes most of the time divide the micro-batches") {
  const test::BoundRatio ratio = test::compare_with_bounds(
      "scenarios/examples/quickstart.yaml",
      {"model={builder: mlp, widths: [256, 8192, 8192, 256]}", "plan={planner: balanced, stages: 2}",
       "run.micro_batches=32",
       "cluster={generator: star, groups: [{name: a, count: 2, type: fast, link: wire}], types: {fast: {peak: 2 "
       "TFLOP/s, "
       "memory: 16 GiB, memory_bandwidth: 1 TB/s}}, links: {wire: {bandwidth: 100 GB/s, latency: 1 us}}}"},
      "chimera");
  CHECK(ratio.ran);
}

}  // namespace stagecraft::group_bounds_test
