// Shared experts next to the exchanges of the others, and outputs that a backward computes again, against amounts
// computed by hand.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <fmt/core.h>

#include "sim/cost/layer_collectives.hpp"
#include "sim/cost/recomputed_operations.hpp"
#include "sim/cost/side_operations.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::shared_experts_test {
namespace {

// Eight devices of 100 TFLOP/s in a node. Each has 1024 tokens of width 1024, sends two copies of each, and has two
// shared experts of width 256.
constexpr double kTokens = 1024, kHidden = 1024, kShared = 2 * 256, kRate = 100e12, kMemory = 100e12;

std::string scenario(const char* overlap, const char* link,
                     const std::string& plan = "replicas: 8, group: {expert: 8") {
  return fmt::format(R"(schema: scenario/2
model: {{builder: transformer, kind: gpt, layers: 1, hidden: 1024, heads: 8, feed_forward: 256, sequence: 1024,
         vocabulary: 4096, norm: rms, gated: true, bias: false, positions: rotary, flash_attention: true,
         precision: mixed, experts: {{count: 8, active: 2, width: 256, shared: 2}}}}
cluster:
  generator: nvlink_pods
  types: {{gpu: {{peak: 100 TFLOP/s, efficiency: 1, memory: 80 GiB, memory_bandwidth: 100 TB/s, launch: 0 s}}}}
  nodes: [{{name: node, count: 1, gpus: 8, type: gpu, inside: nvswitch}}]
  links: {{nvlink: {{bandwidth: {}, latency: 0 s}}, nic: {{bandwidth: 50 GB/s, latency: 0 s}}}}
plan: {{planner: balanced, stages: 1, {}, shared_overlap: {}}}}}
run: {{schedule: 1f1b, micro_batches: 1, iterations: 1}}
software: plain
)",
                     link, plan, overlap);
}

using Passes = EachPass<TimeByClass>;

CompiledExperiment compiled(const std::string& text) {
  return compile(load_experiment(test::own_file("shared_experts_test.yaml", text), {}));
}

Passes passes(const char* overlap, const char* link) {
  return compiled(scenario(overlap, link)).costs.at(StageId{0}, 0).passes;
}

/// A layer of the middle of a model.
std::vector<Operation> layer_of(const char* model) {
  const Experiment e = load_experiment(
      test::own_file(
          "outputs_test.yaml",
          fmt::format("schema: scenario/2\nmodel: {}\ncluster: hgx-h100-x2\nplan: {{planner: balanced, stages: "
                      "8}}\nrun: {{schedule: 1f1b, micro_batches: 8}}\n",
                      model)),
      {});
  return e.model->layers[LayerId{e.model->layers.size() / 2}].operations;
}

/// How many operations of each kind a backward computes again.
std::map<OperationKind, int> repeated(const char* model, Recomputation modules) {
  const std::vector<Operation> operations = layer_of(model);
  const std::vector<bool> again = recomputed_operations(operations, modules);
  std::map<OperationKind, int> of_kind;
  for (std::size_t i = 0; i < again.size(); ++i)
    if (again[i]) ++of_kind[operations[i].kind];
  return of_kind;
}

}  // namespace

TEST_CASE("shared experts hide the exchanges of the others, each half what runs next to it") {
  const double up = 2 * kTokens * kHidden * 2 * kShared / kRate, down = 2 * kTokens * kShared * kHidden / kRate;
  const double gate = 2 * 3 * kTokens * kShared / kMemory, gate_backward = 2 * 5 * kTokens * kShared / kMemory;
  // Each of the two exchanges sends 7/8 of two copies of 16 bits for each number of a token.
  const double sent = 7.0 / 8 * 2 * 2 * kTokens * kHidden;
  SUBCASE("exchanges that take longer are hidden for as long as the products last") {
    const Passes before = passes("false", "20 GB/s"), after = passes("true", "20 GB/s");
    CHECK(before.forward.expert.value == doctest::Approx(2 * sent / 20e9).epsilon(1e-9));
    const auto hidden = [&](TimeByClass Passes::*pass) { return ((before.*pass).expert - (after.*pass).expert).value; };
    CHECK(hidden(&Passes::forward) == doctest::Approx(up + gate + down).epsilon(1e-9));
    CHECK(hidden(&Passes::backward) == doctest::Approx(2 * (up + down) + gate_backward).epsilon(1e-9));
    CHECK(hidden(&Passes::input_gradient) == doctest::Approx(up + down + gate_backward).epsilon(1e-9));
  }
  SUBCASE("shorter ones are hidden whole, and the longer products hide no more than their own exchange") {
    const double each = sent / 200e9;
    CHECK(each < up);
    CHECK(each > down);
    const Passes before = passes("false", "200 GB/s"), after = passes("true", "200 GB/s");
    CHECK(before.forward.expert.value == doctest::Approx(2 * each).epsilon(1e-9));
    CHECK(after.forward.expert.value == doctest::Approx(each - down).epsilon(1e-9));
    CHECK(after.backward.expert.value == doctest::Approx(std::max(0.0, each - 2 * down)).epsilon(1e-9));
  }
  SUBCASE("products take what they took") {
    const Passes before = passes("false", "20 GB/s"), after = passes("true", "20 GB/s");
    CHECK(before.forward.products == after.forward.products);
    CHECK(before.backward.kernels() == after.backward.kernels());
  }
}

TEST_CASE("shared experts next to exchanges shorten runs, as cost and as messages") {
  const auto period = [](const char* overlap, const char* collectives) {
    std::string text = scenario(overlap, "20 GB/s");
    text.replace(text.find("iterations: 1"), 13, fmt::format("iterations: 1, collectives: {}", collectives));
    return run(compiled(text), "fluid").report.length.value;
  };
  CHECK(period("true", "cost") < period("false", "cost"));
  CHECK(period("true", "flows") == doctest::Approx(period("true", "cost")).epsilon(1e-9));
}

TEST_CASE("operations that need neither what is sent to experts nor what comes back are next to it") {
  const CompiledExperiment c = compiled(scenario("false", "20 GB/s"));
  for (const Layer& layer : c.experiment.model->layers) {
    const SideOperations side = side_operations(layer.operations);
    const bool has_experts = std::any_of(layer.operations.begin(), layer.operations.end(),
                                         [](const Operation& o) { return o.kind == OperationKind::Dispatch; });
    CHECK(side.next_to_dispatch.size() == (has_experts ? 2 : 0));  // Gate and up as one product, then the gate.
    CHECK(side.next_to_combine.size() == (has_experts ? 1 : 0));
    for (const int i : side.next_to_combine) CHECK(layer.operations[i].columns == kHidden);
  }
}

TEST_CASE("recomputed outputs are norms, activations and up-projections of latent attention") {
  const auto counts = [](const char* model) { return repeated(model, Recomputation::Outputs); };
  using enum OperationKind;
  CHECK(counts("llama-3-8b") == std::map<OperationKind, int>{{RmsNorm, 2}, {GatedSilu, 1}});
  // The trace of DeepSeek-V3 has 16 products in bf16 or fp8 for the dense parts of a layer: 7 forward, 7 for input
  // gradients, and these two again.
  CHECK(counts("deepseek-v3") == std::map<OperationKind, int>{{RmsNorm, 4}, {GatedSilu, 2}, {Linear, 2}, {Rotary, 1}});
}

// A layer of Llama keeps 12 + 4 g/a + 6 f/h bytes for each number of its width, of which the outputs of two norms are 4
// and that of the activation 2 f/h.
TEST_CASE("what is computed again is not kept") {
  const auto stash = [](const char* recompute) {
    const PlannedExperiment p = plan_experiment(load_experiment(
        test::own_file(
            "outputs_test.yaml",
            fmt::format("schema: scenario/2\nmodel: llama-3-8b\ncluster: hgx-h100-x2\nplan: {{planner: balanced, "
                        "stages: 8, recompute: {}}}\nrun: {{schedule: 1f1b, micro_batches: 8}}\n",
                        recompute)),
        {}));
    const StageCost& cost = p.costs.at(StageId{4}, 0);
    const double layers = static_cast<double>(p.plan.stage(StageId{4}).shape.layers.size());
    return std::pair(cost.memory.stash.value / layers, cost.passes.backward.total().value);
  };
  const auto [whole, fast] = stash("none");
  const auto [rest, slow] = stash("outputs");
  const double numbers = 8192.0 * 4096, g = 8.0 / 32, f = 14336.0 / 4096;
  CHECK(whole == doctest::Approx(numbers * (12 + 4 * g + 6 * f)));
  CHECK(rest == doctest::Approx(numbers * (8 + 4 * g + 4 * f)));
  CHECK(slow > fast);
}

// The layers of DeepSeek-V3 have norms of their own and of two short vectors, and a shared expert next to the others.
TEST_CASE("each module of Megatron-LM is a part of a layer") {
  using enum OperationKind;
  using Kinds = std::map<OperationKind, int>;
  const char* const experts = "deepseek-v3";
  CHECK(repeated(experts, Recomputation::Norms) == Kinds{{RmsNorm, 2}});
  CHECK(repeated(experts, Recomputation::UpProjections) == Kinds{{RmsNorm, 2}, {Linear, 2}, {Rotary, 1}});
  CHECK(repeated(experts, Recomputation::ExpertActivations) == Kinds{{GatedSilu, 1}});
  CHECK(repeated(experts, Recomputation::SharedExperts) == Kinds{{GatedSilu, 1}, {Linear, 2}});
  CHECK(repeated(experts, Recomputation::Experts) ==
        Kinds{{GatedSilu, 2}, {Linear, 2}, {Router, 1}, {Dispatch, 1}, {GroupedLinear, 2}, {Combine, 1}});
  CHECK(repeated(experts, Recomputation::DenseLayers).empty());
  const char* const dense = "llama-3-8b";
  CHECK(repeated(dense, Recomputation::DenseLayers) == Kinds{{GatedSilu, 1}, {Linear, 2}});
  CHECK(repeated(dense, Recomputation::Experts | Recomputation::SharedExperts).empty());
  CHECK(repeated(dense, Recomputation::ExpertActivations).empty());
  CHECK(repeated(dense, Recomputation::Norms | Recomputation::DenseLayers) ==
        Kinds{{RmsNorm, 2}, {GatedSilu, 1}, {Linear, 2}});
}

TEST_CASE("modules have words, and their unions lists") {
  CHECK(to_text(Recomputation::Outputs) == "outputs");
  CHECK(to_text(Recomputation::Selective) == "selective");
  CHECK(to_text(Recomputation::Experts | Recomputation::Norms) == "[layernorm, moe]");
  for (const std::string& name : recomputation_modules()) {
    const std::optional<Recomputation> module = recomputation_module(name);
    REQUIRE(module.has_value());
    CHECK(to_text(*module) == (name == "core_attn" ? "selective" : "[" + name + "]"));
  }
  CHECK_FALSE(recomputation_module("attn").has_value());
}

// A forward of experts sends rows and gets them back, which its repetition does too; their gradients go the same way.
TEST_CASE("experts that run again exchange rows again, and what is computed again alone does not") {
  const auto all_to_alls = [](const char* recompute) {
    const CompiledExperiment c = compiled(
        scenario("false", "50 GB/s", fmt::format("replicas: 8, recompute: {}, group: {{expert: 8", recompute)));
    const StageShape& shape = c.plan.stage(StageId{0}).shape;
    std::map<std::string, int> count;
    for (const LayerId id : shape.layers) {
      const EachPass<PassCost> passes = c.experiment.costs->passes(id, shape, DeviceTypeId{0}, whole_samples(1));
      const auto add = [&](const char* pass, const Collectives& list) {
        count[pass] += static_cast<int>(std::count_if(
            list.begin(), list.end(), [](const Collective& one) { return one.kind == CollectiveKind::AllToAll; }));
      };
      add("forward", passes.forward.collectives), add("again", passes.recompute.collectives);
    }
    return count;
  };
  CHECK(all_to_alls("[moe]") == std::map<std::string, int>{{"forward", 2}, {"again", 2}});
  CHECK(all_to_alls("[layernorm, moe_act, shared_experts]") ==
        std::map<std::string, int>{{"forward", 2}, {"again", 0}});
  CHECK(all_to_alls("layers") == std::map<std::string, int>{{"forward", 2}, {"again", 2}});
}

// A token of DeepSeek-V3 has experts in 4 of 8 groups. On 8 nodes a group is on one node, so a token leaves for 4 x 7/8
// others. On 16 nodes each group is on two, and 8 experts on these 8 nodes reach 8 (1 - (7/8)^8) of them.
TEST_CASE("groups of experts bound the nodes that a token reaches") {
  const auto across = [](int nodes, int groups) {
    std::vector<Operation> operations = layer_of("deepseek-v3");
    for (Operation& op : operations)
      if (op.kind == OperationKind::Dispatch || op.kind == OperationKind::Combine) op.nodes = 4, op.groups = groups;
    StageShape shape;
    shape.degrees.replicas = shape.degrees.expert = 8 * nodes;
    shape.dispatcher = ExpertDispatch::PerNode;
    const Collectives list = collectives_of(operations, shape, {.devices = 8, .card = {}}, whole_samples(1), 2).forward;
    const auto at =
        std::find_if(list.begin(), list.end(), [](const Collective& c) { return c.part == GroupPart::AcrossNodes; });
    REQUIRE(at != list.end());
    return at->bytes.value;
  };
  CHECK(across(8, 8) == across(8, 0));
  const double reached = 8 * (1 - std::pow(7.0 / 8, 8));
  CHECK(across(16, 8) == doctest::Approx(across(16, 0) * reached / 4));
  CHECK(across(16, 16) == across(16, 0));
}

}  // namespace stagecraft::shared_experts_test
