// The search on small random models and clusters, compared with every setting: each number of stages and replicas, each
// micro-batch size, recomputation, schedule and list of devices, or each division into groups.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/framework_limits.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::exhaustive_test {
namespace {

using Strings = std::vector<std::string>;

const Strings kSchedules = {"1f1b", "zb-h1", "interleaved", "zb-v"};
const Strings kShards = {"none", "optimizer", "gradients", "weights"};
constexpr double kRounding = 1 + 1e-9;
constexpr int kFastPrice = 3, kSlowPrice = 1;  // Dollars for an hour.

std::string number(int n) { return std::to_string(n); }

/// The seconds, dollars or joules of an iteration with these settings, from what `run` reports; infinite if they cannot
/// run, or the framework does not run them.
double amount_of(const std::string& file, Strings sets, const Strings& more, Objective objective,
                 const FrameworkLimits& limits) {
  sets.insert(sets.end(), more.begin(), more.end());
  sets.emplace_back("run.iterations=5");
  try {
    const CompiledExperiment c = compile(load_experiment(file, sets));
    const std::vector<StateSharding>& states = limits.shardings();
    if (std::find(states.begin(), states.end(), c.experiment.plan.sharding) == states.end()) return kInfinity;
    if (!limits.refusal_of(c).empty()) return kInfinity;
    const Report report = run(c, "ideal").report;
    if (objective == Objective::Time) return report.period.value;
    if (objective == Objective::Energy) return report.energy.value / 5;
    std::map<std::string, int> paid;
    for (const Stage& stage : c.plan.stages)
      for (const DeviceId d : stage.all_devices()) paid.emplace(c.cluster().devices[d].name, 0);
    double dollars = 0;
    for (const auto& [name, unused] : paid) dollars += name.starts_with("b") ? kSlowPrice : kFastPrice;
    return dollars * report.period.value / 3600;
  } catch (const InputError&) {
  } catch (const Infeasible&) {
  }
  return kInfinity;
}

/// The smallest amount of everything in `settings`, compared with the first row of the search; whether anything ran.
bool compare(const std::string& file, const Strings& base, const Strings& schedules,
             const std::vector<Strings>& settings, Objective objective = Objective::Time) {
  const FrameworkLimits limits(load_experiment(file, base), true);
  double smallest = kInfinity;
  Strings which;
  for (const Strings& one : settings)
    for (const std::vector<Overlap>& features : overlap_sets(limits.switches())) {
      Strings switched = one;
      for (const Overlap f : features) switched.push_back(fmt::format("software.overlap.{}=true", name_of(f)));
      const double amount = amount_of(file, base, switched, objective, limits);
      if (amount < smallest) smallest = amount, which = switched;
    }
  // Settings use all of the memory, so the search leaves no margin.
  const ChoiceTable table =
      search_choices(load_experiment(file, base), {.schedules = schedules, .objective = objective, .margin = 0},
                     [](const SearchProgress&) {});
  CAPTURE(join(base, "; "));
  CAPTURE(join(which, "; "));
  REQUIRE(table.front.empty() == (smallest == kInfinity));
  if (table.front.empty()) return false;
  const Choice& first = table.front.front();
  CAPTURE(join(first.sets, "; "));
  CHECK(!table.cut_short);
  CHECK(first.amount <= smallest * kRounding);
  // Other planners may cut where `balanced` does not; no setting has buckets of gradients, or devices of several nodes
  // in another order.
  Strings without_buckets = first.sets;
  std::erase_if(without_buckets, [](const std::string& set) { return set.starts_with("run.gradient_buckets="); });
  if (first.planner == "balanced" && join(first.sets, " ").find("devices:") == std::string::npos)
    CHECK(amount_of(file, base, without_buckets, objective, limits) >= smallest / kRounding);
  CHECK(first.amount == doctest::Approx(amount_of(file, base, first.sets, objective, limits)).epsilon(1e-9));
  CHECK(table.bound <= first.amount * kRounding);
  return true;
}

/// Every list of some of the devices of two types, in each order of types: devices of one type are alike.
std::vector<std::string> device_lists(int fast, int slow, int count) {
  std::vector<std::string> lists;
  for (int mask = 0; mask < 1 << count; ++mask) {  // Bit i: device i of the list is slow.
    std::string list;
    int fasts = 0, slows = 0;
    for (int i = 0; i < count; ++i)
      list += (i > 0 ? ", " : "") + ((mask >> i & 1) != 0 ? "b" + number(slows++) : "a" + number(fasts++));
    if (fasts <= fast && slows <= slow) lists.push_back(list);
  }
  return lists;
}

struct Cluster {
  int fast, slow;
};

Strings random_chain(Rng& rng, Cluster& cluster, int samples) {
  std::string widths = number(64 * rng.integer(1, 8));
  for (int l = rng.integer(2, 5); l > 0; --l) widths += ", " + number(64 * rng.integer(1, 8));
  const int devices = rng.integer(1, 3);
  cluster.slow = devices > 1 ? rng.integer(0, 1) : 0, cluster.fast = devices - cluster.slow;
  std::string groups = "{name: a, count: " + number(cluster.fast) + ", type: fast, link: wire}";
  if (cluster.slow > 0) groups += ", {name: b, count: 1, type: slow, link: wire}";
  const std::string memory = number(rng.integer(2, 12)) + " MiB, memory_bandwidth: 100 GB/s, busy: ";
  return {"model={builder: mlp, widths: [" + widths + "]}",
          "cluster={generator: star, groups: [" + groups + "], types: {fast: {peak: 2 TFLOP/s, memory: " + memory +
              "300 W, idle: 90 W}, slow: {peak: 1 TFLOP/s, memory: " + memory +
              "110 W, idle: 20 W}}, links: {wire: {bandwidth: " + number(rng.integer(1, 20)) +
              " GB/s, latency: 1 us}}}",
          "plan={planner: balanced, stages: 1, micro_batch_size: " + number(samples) + "}", "run.micro_batches=1",
          "report={prices: {fast: " + number(kFastPrice) + "}, price: " + number(kSlowPrice) + "}"};
}

std::vector<Strings> chains(const Cluster& cluster, int samples) {
  std::vector<Strings> settings;
  const int devices = cluster.fast + cluster.slow;
  for (int ranks = 1; ranks <= devices; ++ranks)
    for (int replicas = 1; ranks * replicas <= devices; ++replicas)
      for (int size = replicas; size <= samples; ++size) {
        if (samples % size != 0) continue;
        for (const std::string& list : device_lists(cluster.fast, cluster.slow, ranks * replicas))
          for (const char* recompute : {"none", "full"})
            for (const std::string& schedule : kSchedules)
              for (const int chunks : schedule == "interleaved" ? std::vector{2, 3, 4}
                                      : schedule == "zb-v"      ? std::vector{2}
                                                                : std::vector{1})
                settings.push_back({"plan={planner: balanced, stages: " + number(ranks * chunks) +
                                        ", replicas: " + number(replicas) + ", micro_batch_size: " + number(size) +
                                        ", recompute: " + recompute + ", devices: [" + list + "]}",
                                    "run.schedule=" + schedule, "run.micro_batches=" + number(samples / size)});
      }
  return settings;
}

/// Four or two H100, with a transformer whose costs come from shapes.
Strings random_groups(Rng& rng, const char* software, int devices, int samples) {
  return {"model={builder: transformer, kind: gpt, layers: " + number(rng.integer(2, 4)) + ", hidden: " +
              number(256 * rng.integer(1, 4)) + ", heads: 4, sequence: 512, vocabulary: 1024, precision: mixed}",
          "cluster={base: superpod-h100-256, override: {nodes: 1, gpus: " + number(devices) + "}}",
          "plan={planner: balanced, stages: 1, replicas: 1, micro_batch_size: 1, shard: none}",
          std::string("software=") + software, "run.global_batch=" + number(samples)};
}

/// `alone`: with several stages on a single rank, which Megatron-LM refuses. `list`: the devices; empty: all.
std::vector<Strings> divisions(int devices, int samples, bool alone, const std::string& list = {}) {
  std::vector<Strings> settings;
  for (int tensor = 1; tensor <= devices; tensor *= 2)
    for (int ranks = 1; tensor * ranks <= devices; ranks *= 2) {
      const int replicas = devices / (tensor * ranks);
      for (int size = 1; size * replicas <= samples; ++size)
        for (const std::string& shard : replicas > 1 ? kShards : Strings{"none"})  // A single replica shares nothing.
          for (const char* recompute : {"none", "selective", "layers"})
            for (const int chunks : ranks > 1 || alone ? std::vector{1, 2, 3, 4} : std::vector{1})
              settings.push_back({"plan={planner: balanced, stages: " + number(ranks * chunks) +
                                      ", replicas: " + number(replicas) + ", micro_batch_size: " + number(size) +
                                      ", group: {tensor: " + number(tensor) +
                                      ", sequence: " + (tensor > 1 ? "true" : "false") + "}, shard: " + shard +
                                      ", recompute: " + recompute + list + "}",
                                  chunks == 1 ? "run.schedule=1f1b" : "run.schedule=interleaved"});
    }
  return settings;
}

/// Two nodes of two H100, with a transformer with four experts in each layer.
Strings random_experts(Rng& rng, const char* software, int samples) {
  return {"model={builder: transformer, kind: gpt, layers: " + number(rng.integer(3, 6)) +
              ", hidden: " + number(512 * rng.integer(1, 4)) +
              ", heads: 4, feed_forward: 512, sequence: 1024, vocabulary: " + number(2048 * rng.integer(1, 8)) +
              ", norm: rms, gated: true, bias: false, positions: rotary, flash_attention: true, precision: mixed, "
              "experts: {count: 4, active: 2, width: " +
              number(256 * rng.integer(1, 4)) + "}}",
          "cluster={base: superpod-h100-256, override: {nodes: 2, gpus: 2, nic.bandwidth: " +
              number(25 * rng.integer(1, 16)) + " Gbit/s}}",
          "plan={planner: balanced, stages: 1, replicas: 1, micro_batch_size: 1, shard: none, group: {dispatcher: " +
              std::string(rng.integer(0, 1) == 0 ? "per_node" : "alltoall") + "}}",
          std::string("software=") + software, "run.global_batch=" + number(samples)};
}

/// Divisions of `count` devices into tensor, expert and data-parallel groups and stages, as the search's own words list
/// them.
std::vector<Strings> expert_divisions(int count, int samples, const Strings& schedules, bool alone,
                                      const std::string& dispatcher, const std::string& list) {
  std::vector<Strings> settings;
  for (int tensor = 1; tensor <= 2; tensor *= 2)
    for (int expert = tensor > 1 ? 2 : 1; expert <= 4; expert *= 2)
      for (int ranks = 1; tensor * ranks <= count; ranks *= 2) {
        const int replicas = count / (tensor * ranks);
        if (tensor * replicas % expert != 0) continue;
        for (const int size : {1, 2, 3, 4, 6, 8})
          for (const std::string& shard : replicas > 1 ? kShards : Strings{"none"})
            for (const char* recompute : {"none", "layers"})
              for (const std::string& schedule : schedules)
                for (const int chunks : schedule == "1f1b"          ? std::vector{1}
                                        : ranks == 1 && !alone      ? std::vector<int>{}
                                        : schedule == "interleaved" ? std::vector{2, 3, 4}
                                                                    : std::vector{2})
                  if (size * replicas <= samples)
                    settings.push_back({"plan={planner: balanced, stages: " + number(ranks * chunks) +
                                            ", replicas: " + number(replicas) + ", micro_batch_size: " + number(size) +
                                            ", group: {tensor: " + number(tensor) +
                                            ", sequence: " + (tensor > 1 ? "true" : "false") +
                                            ", expert: " + number(expert) + ", dispatcher: " + dispatcher +
                                            "}, shard: " + shard + ", recompute: " + recompute + list + "}",
                                        "run.schedule=" + schedule});
      }
  return settings;
}

}  // namespace

TEST_CASE("the search is as good as every division of experts over nodes, on 40 random models") {
  Rng rng(40, "experts");
  int ran = 0;
  const int count = test::all_trials() ? 40 : 3;
  for (int trial = 0; trial < count; ++trial) {
    CAPTURE(trial);
    const char* const software[] = {"torchtitan", "megatron-bridge", "plain"};
    const int samples = 4 * rng.integer(1, 2);
    const Strings base = random_experts(rng, software[trial % 3], samples);
    const bool alone = trial % 3 != 1;
    const Strings schedules = alone ? Strings{"1f1b", "interleaved", "zb-v"} : Strings{"1f1b", "interleaved"};
    const std::string dispatcher = base[2].find("per_node") != std::string::npos ? "per_node" : "alltoall";
    std::vector<Strings> settings = expert_divisions(4, samples, schedules, alone, dispatcher, "");
    for (Strings& one :
         expert_divisions(2, samples, schedules, alone, dispatcher, ", devices: [\"pod0.node0.gpu[0-1]\"]"))
      settings.push_back(std::move(one));
    ran += compare("scenarios/examples/search-groups.yaml", base, schedules, settings);
  }
  CHECK(ran == count);
}

TEST_CASE("the search is as good as every setting, on 250 random models and clusters") {
  Rng rng(250, "exhaustive");
  int ran = 0;
  const int count = test::all_trials() ? 250 : 4;
  for (int trial = 0; trial < count; ++trial) {
    CAPTURE(trial);
    const int samples = rng.integer(1, 3) * 2;
    Cluster cluster{};
    const Strings base = random_chain(rng, cluster, samples);
    ran += compare("scenarios/examples/quickstart.yaml", base, kSchedules, chains(cluster, samples));
  }
  CHECK(ran > count / 2);
}

TEST_CASE("the search is as good as every division into groups, on 50 random models") {
  Rng rng(50, "groups");
  int ran = 0;
  const int count = test::all_trials() ? 50 : 3, most_doublings = test::all_trials() ? 2 : 1;
  for (int trial = 0; trial < count; ++trial) {
    CAPTURE(trial);
    const bool alone = trial % 2 == 1;
    const int devices = 1 << rng.integer(1, most_doublings), samples = devices * rng.integer(1, 2);
    const Strings base = random_groups(rng, alone ? "plain" : "megatron-no-overlap", devices, samples);
    ran += compare("scenarios/examples/search-groups.yaml", base, {"1f1b", "interleaved"},
                   divisions(devices, samples, alone));
  }
  CHECK(ran == count);
}

TEST_CASE("the search for the lowest cost or energy is as good as every setting, on 100 random models and clusters") {
  Rng rng(100, "exhaustive costs");
  int ran = 0;
  const int count = test::all_trials() ? 100 : 4;
  for (int trial = 0; trial < count; ++trial) {
    CAPTURE(trial);
    const int samples = rng.integer(1, 3) * 2;
    Cluster cluster{};
    const Strings base = random_chain(rng, cluster, samples);
    ran += compare("scenarios/examples/quickstart.yaml", base, kSchedules, chains(cluster, samples),
                   trial % 2 == 0 ? Objective::Cost : Objective::Energy);
  }
  CHECK(ran > count / 2);
}

TEST_CASE("the search for the lowest cost or energy with groups is as good as every part of the cluster") {
  Rng rng(20, "costs of groups");
  int ran = 0;
  const int count = test::all_trials() ? 20 : 2;
  for (int trial = 0; trial < count; ++trial) {
    CAPTURE(trial);
    const int devices = test::all_trials() ? 4 : 2, samples = devices * rng.integer(1, 2);
    Strings base = random_groups(rng, "megatron-no-overlap", devices, samples);
    base.push_back("report={price: " + number(kFastPrice) + "}");
    std::vector<Strings> settings;
    for (int part = 1; part <= devices; part *= 2) {
      const std::string list = ", devices: [\"pod0.node0.gpu[0-" + number(part - 1) + "]\"]";
      for (Strings& one : divisions(part, samples, false, part == devices ? "" : list))
        settings.push_back(std::move(one));
    }
    ran += compare("scenarios/examples/search-groups.yaml", base, {"1f1b", "interleaved"}, settings,
                   trial % 2 == 0 ? Objective::Cost : Objective::Energy);
  }
  CHECK(ran == count);
}

}  // namespace stagecraft::exhaustive_test
