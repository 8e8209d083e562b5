// The search over training configurations: no choice that it omits is better.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/evaluation.hpp"
#include "sim/search/plan_table.hpp"
#include "sim/search/plan_variants.hpp"
#include "sim/search/policies.hpp"
#include "tests/support/files.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::choices_test {
namespace {

const std::string kFile = "scenarios/examples/quickstart.yaml";
const std::vector<std::string> kSmall = {
    "model={builder: mlp, widths: [64, 64, 256, 64, 64, 64]}",
    "cluster={generator: uniform, devices: 3, type: any, types: {any: {peak: 1 TFLOP/s, memory: 1 GiB, "
    "memory_bandwidth: 100 GB/s, busy: 300 W, idle: 100 W}}, link: {bandwidth: 1 GB/s, latency: 1 us}}",
    "plan={planner: balanced, stages: 3, micro_batch_size: 2}", "run.micro_batches=4"};

/// As kSmall, with attention, which selective recomputation needs.
std::vector<std::string> with_attention() {
  std::vector<std::string> sets = kSmall;
  sets[0] =
      "model={builder: transformer, kind: gpt, layers: 4, hidden: 32, heads: 4, sequence: 128, vocabulary: 50, "
      "attention_dropout: true}";
  return sets;
}

ChoiceTable search(std::vector<std::string> schedules, std::vector<std::string> sets = kSmall) {
  return search_choices(load_experiment(kFile, std::move(sets)), {.schedules = std::move(schedules)},
                        [](const SearchProgress&) {});
}

/// The choices with every schedule, among which orders are searched for; that takes seconds.
const ChoiceTable& with_every_schedule() {
  static const ChoiceTable table = search({});
  return table;
}

Report report_of(const Choice& c) {
  std::vector<std::string> sets = kSmall;
  sets.insert(sets.end(), c.sets.begin(), c.sets.end());
  sets.emplace_back("run.iterations=5");
  const Experiment scenario = load_experiment(kFile, sets);
  return run(compile(scenario), "ideal").report;
}

/// Period, memory and devices of a choice; nothing if the schedule refuses it.
std::optional<Choice> choice_of(const std::vector<std::string>& sets) {
  try {
    const Experiment scenario = load_experiment(kFile, sets);
    const CompiledExperiment p = compile(scenario);
    const Report report = run(p, "ideal").report;
    Choice c;
    c.period = report.period, c.amount = c.period.value;
    for (const DeviceReport& d : report.devices) c.memory = std::max(c.memory, d.memory.total);
    IdVector<DeviceId, bool> used(3, false);
    for (const Stage& s : p.plan.stages)
      for (const DeviceId d : s.leaders) used[d] = true;
    c.devices = static_cast<int>(std::count(used.begin(), used.end(), true));
    return c;
  } catch (const InputError&) {
    return {};
  } catch (const Infeasible&) {
    return {};
  }
}

/// Number of `balanced` plans that ran; checks that a row of the search covers each.
int compared(const std::vector<std::string>& base, const std::vector<std::string>& words) {
  const std::vector<std::string> schedules = {"1f1b", "zb-h1", "interleaved", "zb-v", "gems", "chimera", "dualpipe"};
  const ChoiceTable table = search(schedules, base);
  int tried = 0;
  for (const int ranks : {1, 2, 3})
    for (int replicas = 1; ranks * replicas <= 3; ++replicas)
      for (const int size : {1, 2, 4, 8})
        for (const std::string& recompute : words)
          for (const std::string& schedule : schedules) {
            const int chunks = schedule == "interleaved" || schedule == "zb-v" ? 2 : 1;
            std::vector<std::string> sets = base;
            sets.push_back("plan={planner: balanced, stages: " + std::to_string(ranks * chunks) +
                           ", replicas: " + std::to_string(replicas) + ", micro_batch_size: " + std::to_string(size) +
                           ", recompute: " + recompute + "}");
            sets.push_back("run.schedule=" + schedule);
            sets.push_back("run.micro_batches=" + std::to_string(8 / size));
            sets.emplace_back("run.iterations=5");
            const std::optional<Choice> c = choice_of(sets);
            if (!c) continue;
            ++tried;
            CAPTURE(schedule);
            CAPTURE(sets[4]);
            CHECK(std::any_of(table.front.begin(), table.front.end(), [&](const Choice& f) { return covers(f, *c); }));
          }
  return tried;
}

}  // namespace

TEST_CASE("each row equals the run of its options, and none covers another") {
  const ChoiceTable& table = with_every_schedule();
  REQUIRE(table.front.size() >= 3);
  for (std::size_t i = 0; i < table.front.size(); ++i) {
    const Choice& c = table.front[i];
    const Report report = report_of(c);
    CHECK(c.period == report.period);
    CHECK(c.makespan == report.makespan);
    for (std::size_t j = 0; j < table.front.size(); ++j)
      if (i != j) CHECK(!covers(table.front[j], c));
    if (i > 0) CHECK(table.front[i - 1].period <= c.period);
  }
  CHECK(table.front.front().period <= table.configured_period);
  CHECK(table.bound > 0);
  CHECK(table.bound <= table.front.front().period.value * (1 + 1e-12));
  CHECK(table.samples == 8);
}

TEST_CASE("no plan outside the front is shorter, smaller or on fewer devices") {
  CHECK(compared(kSmall, {"none", "full"}) > 60);
  CHECK(compared(with_attention(), {"none", "selective", "full"}) > 90);
}

TEST_CASE("an order is searched for with each recomputation, also on plans that others cover") {
  std::vector<std::string> usual;
  for (const SchedulingPolicy& policy : scheduling_policies({}, {}, no_software_stack()))
    if (policy.effort < 2) usual.emplace_back(policy.schedule->name);
  const ChoiceTable without = search(usual);
  const ChoiceTable& table = with_every_schedule();
  std::set<std::string> plans;
  for (const Choice& c : without.front) plans.insert(c.sets.front());
  CHECK(table.simulated - without.simulated > static_cast<int>(plans.size()));  // One order for each plan.
}

TEST_CASE("bidirectional schedules have a plan for each even number of ranks, or a reason why there is none") {
  const ChoiceTable table = search({"chimera"});
  REQUIRE(!table.front.empty());
  CHECK(table.refused.empty());
  for (const Choice& c : table.front) {
    CHECK(c.placement == "bidirectional");
    CHECK(c.stages == 2);  // Three devices allow only one even number of ranks.
    CHECK(report_of(c).period == c.period);
  }
  std::vector<std::string> sets = kSmall;
  sets.back() = "run.micro_batches=1";  // Samples: 2, and DualPipe takes four micro-batches for two ranks.
  const ChoiceTable none = search({"dualpipe"}, sets);
  CHECK(none.front.empty());
  REQUIRE(none.refused.size() == 1);
  CHECK(none.refused[0].first == "dualpipe");
  CHECK(to_text(none, true, true).find("dualpipe runs none of these plans: ") != std::string::npos);
}

TEST_CASE("the answer is the same with any number of threads, evaluated elsewhere and after any interruption") {
  const Experiment experiment = load_experiment(kFile, kSmall);
  const auto ignore = [](const SearchProgress&) {};
  std::vector<std::string> schedules;  // All of them.
  if (!test::all_trials()) schedules = {"1f1b", "interleaved", "zb-v", "chimera"};
  const auto asked = [&](int threads) {
    return ChoiceOptions{.schedules = schedules, .contended = true, .threads = threads};
  };
  const std::string whole = to_text(search_choices(experiment, asked(1), ignore), true, true);
  CHECK(to_text(search_choices(experiment, asked(4), ignore), true, true) == whole);
  ChoiceOptions by_description = asked(1);
  TaskEvaluator evaluator;
  by_description.elsewhere = [&](const std::string& question, const std::vector<std::string>& tasks) {
    if (!evaluator) evaluator = task_evaluator(question, experiment, asked(1));
    std::vector<std::string> results;
    for (const std::string& task : tasks) results.push_back(evaluator(task, {}));
    return results;
  };
  CHECK(to_text(search_choices(experiment, by_description, ignore), true, true) == whole);
  CHECK_THROWS_AS(task_evaluator("another question", experiment, asked(1)), InputError);
  for (const int after : {0, 3, 40, 400}) {
    const std::string file = test::own_file("search_state_" + std::to_string(after));
    ChoiceOptions options = asked(2);
    options.resume = file;
    std::atomic<int> left = after;
    options.stop = [&] { return --left < 0; };
    const ChoiceTable part = search_choices(experiment, options, ignore);
    CHECK(part.stopped == "interrupted");
    options.stop = [] { return false; };
    CHECK(to_text(search_choices(experiment, options, ignore), true, true) == whole);
    options.seed = 7;  // Another question.
    CHECK_THROWS_AS(search_choices(experiment, options, ignore), InputError);
  }
}

TEST_CASE("no order of work is faster, cheaper or takes less energy than the bound of its plan, or needs less memory") {
  Rng rng(11, "bounds");
  int checked = 0;
  for (int trial = 0; trial < 12; ++trial) {
    std::string widths = std::to_string(64 * rng.integer(1, 8));
    for (int l = rng.integer(3, 7); l > 0; --l) widths += ", " + std::to_string(64 * rng.integer(1, 8));
    std::vector<std::string> sets = kSmall;
    sets[0] = "model={builder: mlp, widths: [" + widths + "]}";
    sets.emplace_back("report={price: 2}");
    const auto objective_kind = static_cast<Objective>(trial % 3);
    const Experiment experiment = load_experiment(kFile, sets);
    const PlannedExperiment configured = plan_experiment(experiment);
    const std::vector<SchedulingPolicy> policies = scheduling_policies({}, {}, no_software_stack());
    std::vector<const ScheduleDef*> schedules;
    for (const SchedulingPolicy& policy : policies) schedules.push_back(policy.schedule);
    const SearchObjective objective(objective_kind, configured, 5);
    const FrameworkLimits limits(configured.experiment, true);
    PlannedExperiment fullest = configured;
    fullest.experiment = with_overlap(configured.experiment, limits.switches());
    const CombinationRunner runner(configured.experiment, policies, "ideal", 5, 0, objective, limits);
    const NetworkParts parts(configured.cluster());
    for (const PlanVariant& v : plan_variants(fullest, schedules, parts, objective, limits).list) {
      if (rng.integer(0, 9) > 0) continue;
      bool too_large = false;
      const auto candidate = runner.candidate(v, 1e6, too_large);
      if (!candidate) continue;
      CHECK(v.bound.value <= candidate->bound.unsplit.value * (1 + 1e-9));
      for (const SchedulingPolicy& policy : policies) {
        if (policy.effort == 2 || placement_of(*policy.schedule) != v.placement) continue;
        const Trial t = runner.run({candidate, policy});
        if (t.result != TrialResult::Ran) continue;
        ++checked;
        CAPTURE(policy.schedule->name);
        CAPTURE(join(runner.sets_of({candidate, policy})));
        const Seconds bound = policy.splits ? candidate->bound.period : candidate->bound.unsplit;
        CHECK(bound.value <= t.choice.period.value * (1 + 1e-9));
        CHECK(v.bound.value <= t.choice.period.value * (1 + 1e-9));
        CHECK(v.amount <= t.choice.amount * (1 + 1e-9));
        CHECK(runner.least_amount(*candidate, bound) <= t.choice.amount * (1 + 1e-9));
        CHECK(v.memory.value <= t.choice.memory.value * (1 + 1e-9));
        CHECK(candidate->bound.memory.value <= t.choice.memory.value * (1 + 1e-9));
      }
    }
  }
  CHECK(checked > 500);
}

TEST_CASE("no plan with groups, experts or divided states has less work than is assumed before it is planned") {
  const std::vector<std::string> experts = {
      "model={builder: transformer, kind: gpt, layers: 6, hidden: 1024, heads: 4, feed_forward: 512, sequence: 8192, "
      "vocabulary: 8192, norm: rms, gated: true, bias: false, positions: rotary, flash_attention: true, precision: "
      "mixed, experts: {count: 8, active: 2, width: 512}}",
      "cluster={base: superpod-h100-256, override: {nodes: 4, gpus: 2}}", "run.global_batch=16"};
  int sharded = 0;
  for (const char* software : {"torchtitan", "megatron-bridge"}) {
    std::vector<std::string> sets = experts;
    sets.push_back(std::string("software=") + software);
    sets.emplace_back("plan={planner: balanced, stages: 1, replicas: 8, group: {expert: 2}}");
    const PlannedExperiment configured =
        plan_experiment(load_experiment("scenarios/examples/search-groups.yaml", sets));
    const std::vector<SchedulingPolicy> policies =
        scheduling_policies({"1f1b", "interleaved"}, {}, configured.experiment.software());
    std::vector<const ScheduleDef*> schedules;
    for (const SchedulingPolicy& policy : policies) schedules.push_back(policy.schedule);
    const SearchObjective objective(Objective::Time, configured, 1);
    const FrameworkLimits limits(configured.experiment, true);
    PlannedExperiment fullest = configured;
    fullest.experiment = with_overlap(configured.experiment, limits.switches());
    const CombinationRunner runner(configured.experiment, policies, "ideal", 1, 0, objective, limits);
    const NetworkParts parts(configured.cluster());
    for (const PlanVariant& v : plan_variants(fullest, schedules, parts, objective, limits).list) {
      bool too_large = false;
      const auto candidate = runner.candidate(v, 1e6, too_large);
      if (!candidate) continue;
      sharded += v.plan.sharding == StateSharding::Weights;
      CAPTURE(software);
      CAPTURE(to_text(v.plan, configured.cluster()));
      CHECK(v.bound.value <= candidate->bound.work.value * (1 + 1e-9));
      CHECK(v.memory.value <= candidate->bound.memory.value * (1 + 1e-9));
    }
  }
  CHECK(sharded > 100);
}

TEST_CASE("weights are divided inside of nodes too (HSDP), after the usual plans and with a bound") {
  const PlannedExperiment configured = plan_experiment(
      load_experiment("scenarios/examples/search-groups.yaml",
                      {"cluster={base: superpod-h100-256, override: {nodes: 2, gpus: 4}}", "software=torchtitan"}));
  const std::vector<SchedulingPolicy> policies = scheduling_policies({"1f1b"}, {}, configured.experiment.software());
  const SearchObjective objective(Objective::Time, configured, 1);
  const FrameworkLimits limits(configured.experiment, true);
  PlannedExperiment fullest = configured;
  fullest.experiment = with_overlap(configured.experiment, limits.switches());
  const CombinationRunner runner(configured.experiment, policies, "ideal", 1, 0, objective, limits);
  const NetworkParts parts(configured.cluster());
  std::set<std::pair<int, int>> divided;  // Tensor degree, devices that divide weights.
  for (const PlanVariant& v : plan_variants(fullest, {policies.front().schedule}, parts, objective, limits).list) {
    if (v.plan.shard_within == 0) continue;
    CHECK(v.plan.sharding == StateSharding::Weights);
    CHECK(v.is_unusual);
    bool too_large = false;
    const auto candidate = runner.candidate(v, 1e6, too_large);
    if (!candidate) continue;
    divided.emplace(v.plan.group.tensor, v.plan.shard_within);
    CHECK(v.bound.value <= candidate->bound.work.value * (1 + 1e-9));
  }
  CHECK(divided.contains({1, 4}));
  CHECK(divided.contains({2, 2}));
}

TEST_CASE("no plan with groups or divided states needs less memory than is assumed before it is planned") {
  const PlannedExperiment configured = plan_experiment(load_experiment("scenarios/examples/search-groups.yaml", {}));
  const std::vector<SchedulingPolicy> policies =
      scheduling_policies({"1f1b", "interleaved"}, {}, configured.experiment.software());
  std::vector<const ScheduleDef*> schedules;
  for (const SchedulingPolicy& policy : policies) schedules.push_back(policy.schedule);
  const SearchObjective objective(Objective::Energy, configured, 1);  // Parts of the cluster are tried too.
  const FrameworkLimits limits(configured.experiment, true);
  PlannedExperiment fullest = configured;
  fullest.experiment = with_overlap(configured.experiment, limits.switches());
  const CombinationRunner runner(configured.experiment, policies, "ideal", 1, 0, objective, limits);
  const NetworkParts parts(configured.cluster());
  int divided = 0;
  for (const PlanVariant& v : plan_variants(fullest, schedules, parts, objective, limits).list) {
    bool too_large = false;
    const auto candidate = runner.candidate(v, 1e6, too_large);
    if (!candidate) continue;
    if (v.plan.planner->name != "balanced") continue;
    divided += v.plan.sharding != StateSharding::None;
    CHECK(v.memory.value <= candidate->bound.memory.value * (1 + 1e-9));
    CHECK(v.memory.value > 0.5 * candidate->bound.memory.value);  // So most plans that do not fit need not be made.
  }
  CHECK(divided > 20);
}

TEST_CASE("a search repeats exactly, and without enough memory it has no plan") {
  const ChoiceTable a = search({"1f1b"}), b = search({"1f1b"});
  CHECK(to_text(a, true, true) == to_text(b, true, true));
  std::vector<std::string> sets = kSmall;
  sets[1] =
      "cluster={generator: uniform, devices: 3, type: any, types: {any: {peak: 1 TFLOP/s, memory: 1 KiB, "
      "memory_bandwidth: 100 GB/s}}, link: {bandwidth: 1 GB/s, latency: 1 us}}";
  CHECK(search({"1f1b"}, sets).front.empty());
  for (const char* schedule : {"inference", "csv"}) CHECK_THROWS_AS(search({schedule}), InputError);
}

TEST_CASE("a search is never worse than any planner alone, on random scenarios, with or without a flush") {
  Rng rng(31, "planners");
  const int scenarios = test::trials(30, 12);
  int compared = 0, by_another = 0;
  for (int trial = 0; trial < scenarios; ++trial) {
    std::string widths = std::to_string(64 * rng.integer(1, 8));
    for (int l = rng.integer(3, 7); l > 0; --l) widths += ", " + std::to_string(64 * rng.integer(1, 8));
    const int devices = rng.integer(2, 4), micro_batches = 2 << rng.integer(0, 2);
    const bool mixed = rng.integer(0, 2) == 0, stale = trial % 3 == 2;
    std::string groups = "{name: a, count: " + std::to_string(devices - mixed) + ", type: fast, link: wire}";
    if (mixed) groups += ", {name: b, count: 1, type: slow, link: wire}";
    const std::vector<std::string> sets = {
        "model={builder: mlp, widths: [" + widths + "]}",
        "cluster={generator: star, groups: [" + groups +
            "], types: {fast: {peak: 2 TFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s}, slow: {peak: 1 TFLOP/s, "
            "memory: 1 GiB, memory_bandwidth: 100 GB/s}}, links: {wire: {bandwidth: " +
            std::to_string(rng.integer(1, 20)) + " GB/s, latency: 1 us}}}",
        "plan={planner: balanced, stages: 2, micro_batch_size: " + std::to_string(1 << rng.integer(0, 2)) + "}",
        "run.micro_batches=" + std::to_string(micro_batches),
        stale ? "run.schedule=pipedream" : "run.schedule=1f1b",
        "weights=auto"};
    std::vector<std::string> schedules = {"1f1b", "zb-h1"}, weights;
    if (stale) schedules.insert(schedules.end(), {"pipedream", "2bw"}), weights = {"flush", "stash", "2bw"};
    const ChoiceTable searched = search_choices(
        load_experiment(kFile, sets), {.schedules = schedules, .weights = weights}, [](const SearchProgress&) {});
    REQUIRE(!searched.front.empty());
    CHECK(!searched.cut_short);
    by_another += searched.front.front().planner != "balanced";
    CAPTURE(sets);
    for (const PlanRow& row : compare_plans(load_experiment(kFile, sets), {}).rows) {
      if (!row.ran() || row.planner == "layerpipe") continue;
      ++compared;
      CAPTURE(row.planner);
      CHECK(searched.front.front().period.value <= row.period.value * (1 + 1e-9));
    }
  }
  MESSAGE(compared << " plans compared; the shortest was another planner's than balanced in " << by_another);
  CHECK(compared > 4 * scenarios);
}

}  // namespace stagecraft::choices_test
