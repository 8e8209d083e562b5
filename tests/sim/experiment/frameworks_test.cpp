// What training frameworks are given so that they train as a plan says.

#include <doctest/doctest.h>

#include "sim/experiment/frameworks.hpp"

namespace stagecraft::frameworks_test {
namespace {

PlannedExperiment planned(const std::string& plan, const std::string& schedule = "1f1b",
                          const std::string& model = "llama-3-8b") {
  return plan_experiment(load_experiment("examples/llama-3-8b-4x8",
                                         {"model=" + model, "plan={planner: balanced, " + plan + "}",
                                          "run={schedule: " + schedule + ", micro_batches: 16, iterations: 3}"}));
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

template <class Write>
std::string refusal(Write&& write, const PlannedExperiment& p) {
  try {
    write(p);
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "written";
}

}  // namespace

TEST_CASE("Megatron-LM is given the shape of the model and every degree of the plan") {
  const std::string text = megatron_arguments(
      planned("stages: 2, replicas: 2, micro_batch_size: 4, group: {tensor: 4, sequence: true, context: 2}, shard: "
              "optimizer, recompute: layers"));
  for (const char* line : {"--num-layers 32",
                           "--hidden-size 4096",
                           "--ffn-hidden-size 14336",
                           "--num-attention-heads 32",
                           "--group-query-attention",
                           "--num-query-groups 8",
                           "--seq-length 8192",
                           "--vocab-size 128256",
                           "--swiglu",
                           "--normalization RMSNorm",
                           "--position-embedding-type rope",
                           "--disable-bias-linear",
                           "--untie-embeddings-and-output-weights",
                           "--tensor-model-parallel-size 4",
                           "--sequence-parallel",
                           "--pipeline-model-parallel-size 2",
                           "--context-parallel-size 2",
                           "--cp-comm-type p2p",
                           "--micro-batch-size 4",
                           "--global-batch-size 128",
                           "--use-distributed-optimizer",
                           "--recompute-granularity full",
                           "--recompute-method uniform",
                           "--recompute-num-layers 1",
                           "--bf16"}) {
    CAPTURE(line);
    CHECK(has(text, line));
  }
}

TEST_CASE("an uneven division is written as a layout, which the planner of that name reads back") {
  const PlannedExperiment p = planned("stages: 3, replicas: 1, group: {tensor: 8, sequence: true}");
  const std::string text = megatron_arguments(p);
  const auto begin = text.find("--pipeline-model-parallel-layout \"");
  REQUIRE(begin != std::string::npos);
  const auto from = begin + 34;
  const std::string layout = text.substr(from, text.find('"', from) - from);
  const PlannedExperiment again = plan_experiment(
      load_experiment("examples/llama-3-8b-4x8",
                      {"plan={layout: \"" + layout + "\", replicas: 1, group: {tensor: 8, sequence: true}}"}));
  REQUIRE(again.plan.stages.size() == 3);
  for (const StageId s : p.plan.stages.ids()) CHECK(again.plan.stage(s).shape.layers == p.plan.stage(s).shape.layers);
}

TEST_CASE("experts have their own arguments") {
  const std::string text = megatron_arguments(
      planned("stages: 1, replicas: 16, group: {tensor: 2, sequence: true, expert: 8}, recompute: layers", "1f1b",
              "{base: mixtral-8x7b, override: {sequence: 4096}}"));
  for (const char* line :
       {"--num-experts 8", "--moe-token-dispatcher-type alltoall", "--moe-router-topk 2", "--moe-ffn-hidden-size 14336",
        "--expert-model-parallel-size 8", "--expert-tensor-parallel-size 1"}) {
    CAPTURE(line);
    CHECK(has(text, line));
  }
}

TEST_CASE("torchtitan and DeepSpeed are given what they can express") {
  const std::string titan =
      torchtitan_config(planned("stages: 4, replicas: 2, group: {tensor: 4, sequence: true}, shard: weights", "gpipe"));
  for (const char* line :
       {"local_batch_size = 16", "global_batch_size = 32", "data_parallel_shard_degree = 2",
        "tensor_parallel_degree = 4", "pipeline_parallel_degree = 4", "pipeline_parallel_schedule = \"GPipe\"",
        "fsdp_reshard_after_forward = \"never\"", "mode = \"none\""}) {
    CAPTURE(line);
    CHECK(has(titan, line));
  }
  const std::string speed = deepspeed_config(planned("stages: 2, replicas: 16, shard: optimizer", "1f1b", "gpt2-xl"));
  CHECK(speed.find("\"train_batch_size\": 256") != std::string::npos);
  CHECK(speed.find("\"gradient_accumulation_steps\": 16") != std::string::npos);
  CHECK(speed.find("{\"stage\": 1}") != std::string::npos);
  CHECK(speed.find("\"stages\": 2") != std::string::npos);
}

TEST_CASE("what a framework cannot express is refused with the reason") {
  const auto tensor = planned("stages: 4, replicas: 1, group: {tensor: 8, sequence: true}", "zb-h1");
  CHECK(refusal(megatron_arguments, tensor) == "Megatron-LM does not run the schedule 'zb-h1'");
  CHECK(refusal(megatron_arguments, planned("stages: 2, replicas: 32, placement: loop", "interleaved", "gpt2-xl")) ==
        "Megatron-LM does not interleave the stages of a single rank");
  CHECK(refusal(torchtitan_config, tensor) == "torchtitan does not run the schedule 'zb-h1'");
  CHECK(refusal(deepspeed_config, tensor) ==
        "DeepSpeed's configuration has no tensor, context or expert group: the model's code makes them");
  CHECK(refusal(megatron_arguments, planned("stages: 2, replicas: 16, recompute: full", "1f1b", "gpt2-xl")) ==
        "Megatron-LM recomputes layer by layer, not a whole stage before its backward");
  CHECK(refusal(torchtitan_config, planned("stages: 2, replicas: 16, shard: optimizer", "1f1b", "gpt2-xl")) ==
        "torchtitan divides weights with everything else, or nothing");
  CHECK(refusal(deepspeed_config, planned("stages: 2, replicas: 16, shard: gradients", "1f1b", "gpt2-xl")) ==
        "DeepSpeed's pipeline takes no ZeRO-2 or ZeRO-3");
}

}  // namespace stagecraft::frameworks_test
