// Whether attention is fused follows the software stack, where the model does not say it.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/cost/software.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft::attention_of_software_test {
namespace {

const std::string kModel =
    "{builder: transformer, kind: gpt, layers: 4, hidden: 1024, heads: 16, sequence: 2048, vocabulary: 32000, "
    "precision: mixed";

Experiment experiment(const std::string& software, const std::string& model) {
  return load_experiment("examples/llama-3-8b-4x8", {"model=" + model, "software=" + software, "cluster=hgx-a100-x4",
                                                     "plan={planner: balanced, stages: 2, micro_batch_size: 1}",
                                                     "run={schedule: 1f1b, micro_batches: 4, iterations: 3}"});
}

bool is_fused(const Experiment& e) {
  for (const Layer& layer : e.model->layers)
    for (const Operation& op : layer.operations)
      if (op.kind == OperationKind::Attention) return op.fused;
  FAIL("the model has no attention");
  return false;
}

/// Bytes that a Transformer layer keeps for its backward.
double stash(const Experiment& e) {
  const auto& layers = e.model->layers;
  return std::find_if(layers.begin(), layers.end(), [](const Layer& l) { return l.name == "l0"; })->stash.value;
}

}  // namespace

TEST_CASE("a model without flash_attention has the attention of its software stack") {
  for (const SoftwareStack& stack : software_stacks()) {
    CAPTURE(stack.name);
    const Experiment follows = experiment(std::string(stack.name), kModel + "}");
    const Experiment written =
        experiment(std::string(stack.name),
                   kModel + (stack.fused_attention ? ", flash_attention: true}" : ", flash_attention: false}"));
    CHECK(is_fused(follows) == stack.fused_attention);
    CHECK(stash(follows) == stash(written));
    CHECK(compile(follows).costs.at(StageId{0}, 0).forward == compile(written).costs.at(StageId{0}, 0).forward);
  }
}

TEST_CASE("what the model says wins over the software stack") {
  for (const SoftwareStack& stack : software_stacks()) {
    CAPTURE(stack.name);
    CHECK(is_fused(experiment(std::string(stack.name), kModel + ", flash_attention: true}")));
    CHECK_FALSE(is_fused(experiment(std::string(stack.name), kModel + ", flash_attention: false}")));
  }
}

TEST_CASE("without a software stack nothing changes: a GPT keeps its probabilities, a configuration does not") {
  CHECK_FALSE(is_fused(experiment("none", kModel + "}")));
  const std::string configuration = "{config: tests/cli/models/tiny-llama/config.json}";
  const std::string changed = "{base: " + configuration + ", override: {layers: 4}}";
  CHECK(is_fused(experiment("none", configuration)));
  CHECK(is_fused(experiment("megatron-no-overlap", changed)));
  CHECK_FALSE(is_fused(experiment("megatron-2022", changed)));
  CHECK(is_fused(
      experiment("megatron-2022", "{config: tests/cli/models/tiny-llama/config.json, flash_attention: true}")));
}

TEST_CASE("the resolved scenario says it, and reads back as the same scenario") {
  const Experiment e = experiment("megatron-no-overlap", kModel + "}");
  CHECK(e.source->at("model").at("flash_attention").text == "true");
  CHECK(e.scenario_hash == experiment("megatron-no-overlap", kModel + ", flash_attention: true}").scenario_hash);
}

}  // namespace stagecraft::attention_of_software_test
