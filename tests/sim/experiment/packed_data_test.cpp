// Sequences of different lengths from a scenario: equal ones change nothing, orders and bad input, and real runs.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/random.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::packed_data_test {
namespace {

constexpr const char* kLarge = R"(
schema: scenario/2
model: gpt2-medium
cluster: two-node-mixed
plan: {planner: balanced, stages: 4, micro_batch_size: 1}
run: {schedule: 1f1b, micro_batches: 8}
software: plain
)";

constexpr const char* kReal = R"(
schema: scenario/2
model:
  {builder: transformer, kind: gpt, layers: 3, hidden: 16, heads: 4, sequence: 24, vocabulary: 31, positions: rotary,
   norm: rms, gated: true, bias: false, tied: false, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 2, micro_batch_size: 1}
run: {schedule: 1f1b, loads: [[24]]}
training: {task: random, optimizer: momentum, learning_rate: 0.05, gradient_sum: slots}
)";

Experiment scenario(const char* text, const std::vector<std::string>& sets) {
  return load_experiment(test::own_file("packed_data.yaml", text), sets);
}

Outcome simulated(const std::vector<std::string>& sets) { return run(compile(scenario(kLarge, sets)), "ideal"); }

std::string loads_text(const std::vector<std::vector<int>>& packs) {
  std::string text;
  for (const std::vector<int>& pack : packs) {
    std::string lengths;
    for (const int n : pack) lengths += (lengths.empty() ? "" : ", ") + std::to_string(n);
    text += (text.empty() ? "[" : ", [") + lengths + "]";
  }
  return "[" + text + "]";
}

Learnt learn(const std::vector<std::vector<int>>& packs, const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets{"run.loads=" + loads_text(packs)};
  sets.insert(sets.end(), more.begin(), more.end());
  return *execute(compile(scenario(kReal, sets)), "cpu").learnt;
}

std::vector<double> all_weights(const Learnt& learnt) {
  std::vector<double> weights;
  for (const auto& stage : learnt.weights) weights.insert(weights.end(), stage.begin(), stage.end());
  return weights;
}

double largest_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  return worst;
}

Diagnostic problem(const char* text, const std::vector<std::string>& sets) {
  try {
    compile(scenario(text, sets));
  } catch (const InputError& e) {
    return e.problems().front();
  }
  return {};
}

const std::vector<std::string> kDrawn = {
    "run={schedule: 1f1b, global_batch: 48, iterations: 4}",
    "data={lengths: {kind: lognormal, low: 128, high: 1024, mean: 512, sigma: 1.1}, pack: in-order}"};

std::vector<std::string> with(std::vector<std::string> sets, const std::string& set) {
  sets.push_back(set);
  return sets;
}

}  // namespace

TEST_CASE("loads of the model's length give the times of a run without loads, to the last bit") {
  const Outcome plain = simulated({}),
                loaded = simulated(
                    {"run={schedule: 1f1b}", "run.loads=" + loads_text(std::vector<std::vector<int>>(8, {1024}))});
  CHECK(plain.timeline.start == loaded.timeline.start);
  CHECK(plain.timeline.end == loaded.timeline.end);
  CHECK(plain.report.period.value == loaded.report.period.value);
  CHECK(plain.report.throughput == loaded.report.throughput);
  CHECK(plain.report.rates->of_peak == loaded.report.rates->of_peak);
  for (const DeviceId d : plain.report.devices.ids())
    CHECK(plain.report.devices[d].memory.total.value == loaded.report.devices[d].memory.total.value);
}

TEST_CASE("packs of two whole samples take what micro-batches of two samples take, to the last bit") {
  const Outcome plain = simulated({"plan.micro_batch_size=2"});
  const Outcome loaded =
      simulated({"run={schedule: 1f1b}", "run.loads=" + loads_text(std::vector<std::vector<int>>(8, {1024, 1024}))});
  CHECK(plain.timeline.end == loaded.timeline.end);
  CHECK(plain.report.throughput == loaded.report.throughput);
  CHECK(plain.report.rates->tokens_per_second == loaded.report.rates->tokens_per_second);
}

TEST_CASE("attention pays for pairs: two halves take less than a whole sequence, and keep as much") {
  const CompiledExperiment c =
      compile(scenario(kLarge, {"model.sequence=8192", "run={schedule: 1f1b}", "run.loads=[[8192], [4096, 4096]]"}));
  for (const StageId s : c.plan.stages.ids()) {
    const StageCost &whole = c.costs.at(s, 0, 0), &halves = c.costs.at(s, 0, 1);
    CHECK(halves.passes.forward.attention < 0.75 * whole.passes.forward.attention);
    CHECK(halves.passes.forward.products.value == doctest::Approx(whole.passes.forward.products.value).epsilon(1e-12));
    CHECK(halves.memory.stash.value == doctest::Approx(whole.memory.stash.value).epsilon(1e-12));
  }
}

TEST_CASE("each iteration draws its own sequences, and the period is their mean") {
  const CompiledExperiment c = compile(scenario(kLarge, kDrawn));
  CHECK(c.experiment.run.micro_batches == c.experiment.run.packs->micro_batches);
  CHECK(c.program.load_iterations == 4);
  const Outcome o = run(c, "ideal");
  REQUIRE(o.report.iterations.size() == 4);
  double sum = 0;
  for (const double t : o.report.iterations) sum += t;
  CHECK(o.report.period.value == doctest::Approx(sum / 4).epsilon(1e-12));
  CHECK(*std::min_element(o.report.iterations.begin(), o.report.iterations.end()) < sum / 4);
}

TEST_CASE("hill order is faster than the order of the data") {
  const double given = simulated(kDrawn).report.period.value,
               hill = simulated(with(kDrawn, "data.order=hill")).report.period.value;
  CHECK(hill < 0.97 * given);
}

TEST_CASE("sequences of one context rank each take the time of as many replicas without a context group") {
  const std::string lengths = "data.lengths={kind: equal, length: 512}";
  const CompiledExperiment together = compile(
      scenario(kLarge, {"cluster=superpod-h100-256", "software=megatron-no-overlap", "model.flash_attention=true",
                        "plan={planner: balanced, stages: 4, micro_batch_size: 1, group: {context: 2}}",
                        "run={schedule: 1f1b, global_batch: 16}", "data.pack=dynamic-context", lengths}));
  const CompiledExperiment apart = compile(
      scenario(kLarge, {"cluster=superpod-h100-256", "software=megatron-no-overlap", "model.flash_attention=true",
                        "plan={planner: balanced, stages: 4, micro_batch_size: 1, replicas: 2}",
                        "run={schedule: 1f1b, global_batch: 16}", "data.pack=none", lengths}));
  REQUIRE(together.experiment.run.micro_batches == apart.experiment.run.micro_batches);
  for (const StageId s : together.plan.stages.ids()) {
    const StageCost &a = together.costs.at(s, 0, 0), &b = apart.costs.at(s, 0, 0);
    CHECK(a.passes.forward.products.value == doctest::Approx(b.passes.forward.products.value).epsilon(1e-12));
    CHECK(a.passes.forward.attention.value == doctest::Approx(b.passes.forward.attention.value).epsilon(1e-12));
    CHECK(a.passes.forward.total().value == doctest::Approx(b.passes.forward.total().value).epsilon(1e-12));
    CHECK(a.memory.stash.value == doctest::Approx(b.memory.stash.value).epsilon(1e-12));
  }
}

TEST_CASE("what a context group cannot divide by sequence is refused at data.pack") {
  const std::vector<std::string> sets{"cluster=superpod-h100-256", "software=megatron-no-overlap",
                                      "model.flash_attention=true", "run={schedule: 1f1b, global_batch: 16}",
                                      "data={lengths: {kind: equal, length: 512}, pack: dynamic-context}"};
  const auto refused = [&](const std::string& group, const std::string& set) {
    return problem(kLarge,
                   with(with(sets, "plan={planner: balanced, stages: 4, micro_batch_size: 1" + group + "}"), set));
  };
  CHECK(refused("", "run.seed=1").path == "data.pack");
  CHECK(refused(", group: {context: 4}", "data.room=1022").help == "data.room: 1020");
  CHECK(refused(", group: {context: 4, context_type: a2a}", "run.seed=1").help == "plan.group.context_type: p2p");
  CHECK(refused(", group: {context: 2}", "software=torchtitan").help.find("megatron-core") != std::string::npos);
}

TEST_CASE("orders of every kind are valid with loads") {
  for (const std::string schedule : {"gpipe", "zb-h1", "zb-v", "interleaved", "dualpipev", "chimera"}) {
    CAPTURE(schedule);
    std::string run = "run={schedule: " + schedule + ", global_batch: 48, iterations: 2}";
    const bool chunks = schedule == "interleaved" || schedule == "zb-v" || schedule == "dualpipev";
    std::vector<std::string> sets{run, kDrawn[1], "data.lengths.low=512", chunks ? "plan.stages=8" : "plan.stages=4"};
    try {
      const CompiledExperiment c = compile(scenario(kLarge, sets));
      CHECK(stagecraft::run(c, "ideal").report.period.value > 0);
    } catch (const Infeasible& e) {  // Some need a number of micro-batches that the packs do not make.
      CHECK(e.code() != "cycle");
    } catch (const InputError& e) {
      CHECK(e.problems().front().message.find("micro-batch") != std::string::npos);
    }
  }
}

TEST_CASE("bad lengths are refused at their place") {
  const Diagnostic long_one = problem(kLarge, {"run={schedule: 1f1b}", "run.loads=[[1024], [1025]]"});
  CHECK(long_one.message == "a sequence of 1025 tokens is longer than the 1024 of the model's context");
  CHECK(long_one.path == "run.loads");
  const std::string negative = test::own_file("lengths.txt", "512\n-3\n");
  const Diagnostic line = problem(
      kLarge, {"run={schedule: 1f1b, global_batch: 8}", "data={lengths: {kind: file, file: '" + negative + "'}}"});
  CHECK(line.message == "'-3' is no number of tokens");
  CHECK(line.where.line == 2);
  CHECK(problem(kLarge, with(kDrawn, "data.room=256")).path == "data.lengths");
  CHECK(problem(kLarge, with(kDrawn, "run.loads=[[3]]")).message == "`data` says the loads, too");
  CHECK(problem(kLarge, with(kDrawn, "plan.micro_batch_size=2")).help == "plan.micro_batch_size: 1");
  CHECK(problem(kLarge, {"run={schedule: 1f1b}", "run.loads=[[[3]], [[3], []]]"}).path == "run.loads");
}

TEST_CASE("a pipeline with packs learns what one stage learns, to the last bit") {
  const std::vector<std::vector<int>> packs{{3, 2}, {1}, {24}, {4, 5, 7}, {23, 1}};
  const Learnt expected = learn(packs, {"plan.stages=1"});
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    const Learnt learnt = learn(packs, {"run.schedule=" + schedule});
    CHECK(learnt.losses == expected.losses);
    CHECK(all_weights(learnt) == all_weights(expected));
  }
}

TEST_CASE("whole sequences as packs learn what a run without packs learns, to the last bit") {
  const Learnt learnt = learn(std::vector<std::vector<int>>(4, {24}));
  std::string plain = kReal;
  plain.replace(plain.find("loads: [[24]]"), 13, "micro_batches: 4");
  const Learnt expected = *execute(compile(scenario(plain.c_str(), {})), "cpu").learnt;
  CHECK(learnt.losses == expected.losses);
  CHECK(all_weights(learnt) == all_weights(expected));
}

TEST_CASE("random packings learn what the same sequences alone learn: none attends to another") {
  Rng rng(8, "packings");
  for (int trial = 0; trial < test::trials(100, 20); ++trial) {
    std::vector<std::vector<int>> alone, packs(rng.integer(1, 4));
    for (int i = 0; i < 8; ++i) {
      const int length = rng.integer(1, 12);
      alone.push_back({length});
      packs[i < static_cast<int>(packs.size()) ? i : rng.integer(0, static_cast<int>(packs.size()) - 1)].push_back(
          length);
    }
    const Learnt expected = learn(alone, {"plan.stages=1"}), learnt = learn(packs);
    CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
    CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
  }
}

TEST_CASE("replicas with different packs learn what one device learns") {
  const Learnt expected = learn({{9, 2}, {5}, {7, 7}, {24}}, {"plan.stages=1"});
  const std::string by_replica = "run.loads=[[[9, 2], [7, 7]], [[5], [24]]]";
  const Learnt learnt = *execute(compile(scenario(kReal, {by_replica, "plan.replicas=2"})), "cpu").learnt;
  CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
  CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
}

TEST_CASE("a replica with fewer packs is done earlier, as if the pipeline had no more micro-batches") {
  const std::string plan = "plan={planner: balanced, stages: 2, micro_batch_size: 1, replicas: 2}";
  const auto times = [&](const std::string& loads) {
    return simulated({plan, "run={schedule: 1f1b, iterations: 1}", "run.loads=" + loads});
  };
  const Outcome equal = times("[[[512], [1024], [256]], [[512], [1024], [256]]]");
  const Outcome fewer = times("[[[512], [1024], [256]], [[512]]]");
  const Outcome one = times("[[[512]], [[512]]]");
  // The replica with three packs does not see the other; that one ends with its only pack, and both meet at the sum.
  for (const DeviceId d : equal.report.devices.ids()) {
    const Seconds busy = fewer.report.devices[d].busy;
    if (!equal.report.devices[d].used) continue;
    const bool is_equal = busy.value == doctest::Approx(equal.report.devices[d].busy.value).epsilon(1e-12);
    const bool is_one = busy.value == doctest::Approx(one.report.devices[d].busy.value).epsilon(1e-12);
    CHECK(is_equal != is_one);
  }
  CHECK(fewer.report.makespan.value == doctest::Approx(equal.report.makespan.value).epsilon(1e-12));
}

TEST_CASE("replicas with different numbers of packs learn what one device learns") {
  const Learnt expected = learn({{9, 2}, {5}, {7, 7}, {24}}, {"plan.stages=1"});
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    const std::string by_replica = "run.loads=[[[9, 2], [5], [7, 7]], [[24]]]";
    const Learnt learnt =
        *execute(compile(scenario(kReal, {by_replica, "plan.replicas=2", "run.schedule=" + schedule})), "cpu").learnt;
    CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
    CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
  }
}

TEST_CASE("free counts with as many packs on each replica give the times of equal counts, to the last bit") {
  const std::vector<std::string> sets{"plan={planner: balanced, stages: 2, micro_batch_size: 1, replicas: 2}",
                                      "run={schedule: 1f1b, global_batch: 32, iterations: 2}",
                                      "data={lengths: {kind: equal, length: 512}, pack: in-order, replicas: flops}"};
  const Outcome equal = simulated(sets), free = simulated(with(sets, "data.counts=free"));
  CHECK(equal.timeline.start == free.timeline.start);
  CHECK(equal.timeline.end == free.timeline.end);
}

TEST_CASE("free counts balance replicas better than equal counts") {
  const std::vector<std::string> sets{"plan={planner: balanced, stages: 2, micro_batch_size: 1, replicas: 2}",
                                      "run={schedule: 1f1b, global_batch: 64, iterations: 4}",
                                      "data={lengths: {kind: lognormal, low: 128, high: 1024, mean: 512, sigma: 1.1}, "
                                      "pack: in-order, replicas: flops}"};
  CHECK(simulated(with(sets, "data.counts=free")).report.period < simulated(sets).report.period);
}

}  // namespace stagecraft::packed_data_test
