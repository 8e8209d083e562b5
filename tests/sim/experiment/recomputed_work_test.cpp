// What a recomputation repeats counts in the utilization of the hardware and in the times of planners.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/experiment/run.hpp"

namespace stagecraft::recomputed_work_test {
namespace {

/// GPT-2 with attention in several kernels, whose scores selective recomputation drops.
Experiment gpt(const std::string& planner, const std::string& recompute) {
  return load_experiment("examples/quickstart",
                         {"software=megatron-2021", "plan={planner: " + planner + ", recompute: " + recompute + "}"});
}

}  // namespace

TEST_CASE("the hardware is used for what is computed again, too") {
  for (const std::string recompute : {"none", "selective", "half", "layers", "full"}) {
    CAPTURE(recompute);
    const CompiledExperiment c = compile(gpt("balanced, stages: 4, micro_batch_size: 2", recompute));
    Flops work, again;
    for (const Layer& layer : c.model().layers) {
      work += layer.forward + layer.input_gradient + layer.weight_gradient;
      again += recompute == "selective" ? layer.core.forward
               : recompute == "none"    ? Flops{}
               : recompute == "half"    ? 0.5 * layer.forward
                                        : layer.forward;
    }
    const DeviceRates rates = run(c, "ideal").report.rates.value();
    REQUIRE(rates.of_peak > 0);
    CHECK(rates.hardware_of_peak / rates.of_peak == doctest::Approx(1 + again / work).epsilon(1e-9));
    if (recompute != "none") CHECK(rates.hardware_of_peak > rates.of_peak);
  }
}

TEST_CASE("only the first layers of each stage run again, and the others keep what they need") {
  const auto planned = [](const std::string& recompute) {
    return plan_experiment(load_experiment(
        "examples/llama-3-8b-4x8",
        {"plan={planner: layout, layout: \"Et*16|t*16L\", replicas: 4, group: {tensor: 4, sequence: true}, shard: "
         "optimizer, recompute: " +
         recompute + "}"}));
  };
  const auto cost = [&](const std::string& recompute, StageId s) { return planned(recompute).costs.at(s, 0); };
  for (const StageId s : {StageId{0}, StageId{1}}) {
    CAPTURE(s.value);
    const StageCost none = cost("none", s), every = cost("layers", s), quarter = cost("layers, recompute_layers: 4", s);
    const StageCost half = cost("layers, recompute_layers: 8", s);
    CHECK(quarter.forward == none.forward);
    CHECK(quarter.backward > none.backward);
    CHECK(half.backward.value - none.backward.value ==
          doctest::Approx(2 * (quarter.backward.value - none.backward.value)).epsilon(1e-9));
    CHECK(half.backward < every.backward);
    CHECK(none.memory.stash.value - half.memory.stash.value ==
          doctest::Approx(2 * (none.memory.stash.value - quarter.memory.stash.value)).epsilon(1e-9));
    CHECK(half.memory.stash > every.memory.stash);
    // As many as there are: all of them but the ends of the model.
    CHECK(cost("layers, recompute_layers: 16", s).backward == cost("layers, recompute_layers: 99", s).backward);
  }
}

TEST_CASE("planners price what selective recomputation repeats by the shapes of operations") {
  for (const std::string planner : {"piper, micro_batch_size: 2", "2bw"}) {
    CAPTURE(planner);
    const auto predicted = [&](const std::string& recompute) {  // For a sample, since 2bw chooses micro-batches.
      const PlannedExperiment planned = plan_experiment(gpt(planner, recompute));
      return planned.report.predicted.value / planned.plan.stages.front().micro_batch_size;
    };
    const double none = predicted("none"), selective = predicted("selective");
    CHECK(selective > 1.01 * none);
    CHECK(selective < 1.3 * none);
  }
}

TEST_CASE("what balanced predicts is what its slowest stage takes, whatever is recomputed") {
  const auto planned = [](const std::string& software, const std::string& model, const std::string& recompute) {
    return plan_experiment(
        load_experiment("examples/quickstart",
                        {"software=" + software, "model=" + model, "cluster=superpod-h100-256", "run.micro_batches=8",
                         "plan={planner: balanced, stages: 4, recompute: " + recompute + "}"}));
  };
  const std::string gpt = "gpt2-medium", experts = "{base: qwen3-30b-a3b, override: {layers: 6, sequence: 1024}}";
  for (const std::string recompute : {"none", "selective", "half", "outputs", "layers", "full"})
    for (const bool has_experts : {false, true}) {
      if (recompute == (has_experts ? "selective" : "outputs")) continue;  // Their models have nothing like it.
      CAPTURE(recompute);
      CAPTURE(has_experts);
      const PlannedExperiment p =
          planned(has_experts ? "megatron-bridge" : "megatron-2021", has_experts ? experts : gpt, recompute);
      Seconds slowest;
      for (const StageCost& c : p.costs.values())
        slowest = std::max(slowest, c.forward + c.backward + (recompute == "full" ? c.recompute : Seconds{}));
      CHECK(p.report.predicted.value == doctest::Approx(slowest.value).epsilon(1e-9));
      if (recompute != "none")
        CHECK(p.report.predicted >
              planned(has_experts ? "megatron-bridge" : "megatron-2021", has_experts ? experts : gpt, "none")
                  .report.predicted);
    }
}

}  // namespace stagecraft::recomputed_work_test
