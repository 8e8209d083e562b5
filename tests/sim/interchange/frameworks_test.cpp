// What training frameworks are given so that they train as a plan says.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <algorithm>

#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::frameworks_test {
namespace {

/// `more` are further options, which come last.
PlannedExperiment planned(const std::string& plan, const std::string& schedule = "1f1b",
                          const std::string& model = "llama-3-8b", const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets{"model=" + model, "plan={planner: balanced, " + plan + "}",
                                "run={schedule: " + schedule + ", micro_batches: 16, iterations: 3}"};
  sets.insert(sets.end(), more.begin(), more.end());
  return plan_experiment(load_experiment("examples/llama-3-8b-4x8", sets));
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

template <class Write>
std::string refusal(Write&& write, const PlannedExperiment& p) {
  try {
    write(p);
  } catch (const InputError& e) {
    return e.problems().front().message + " = " + e.problems().front().help;
  }
  return "written";
}

/// Whether the message with its help begins so.
template <class Write>
bool refuses(Write&& write, const PlannedExperiment& p, const std::string& start) {
  const std::string text = refusal(write, p);
  CAPTURE(text);
  CHECK(text.starts_with(start));
  return text.starts_with(start);
}

bool notes(const FrameworkConfiguration& c, const std::string& part) { return test::mentions(c.notes, part); }

/// What the arguments of a plan are imported as.
TrainingSetup imported(const PlannedExperiment& p) {
  return read_megatron(megatron_arguments(p).text, "arguments", {"", "superpod-h100-256", 32, 0});
}

}  // namespace

TEST_CASE("Megatron-LM is given the shape of the model and every degree of the plan") {
  const std::string text =
      megatron_arguments(
          planned("stages: 2, replicas: 2, micro_batch_size: 4, group: {tensor: 4, sequence: true, context: 2}, shard: "
                  "optimizer, recompute: layers"))
          .text;
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
  const std::string text = megatron_arguments(p).text;
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
  const std::string text =
      megatron_arguments(
          planned("stages: 1, replicas: 16, group: {tensor: 2, sequence: true, expert: 8}, recompute: layers", "1f1b",
                  "{base: mixtral-8x7b, override: {sequence: 4096}}"))
          .text;
  for (const char* line :
       {"--num-experts 8", "--moe-token-dispatcher-type alltoall", "--moe-router-topk 2", "--moe-ffn-hidden-size 14336",
        "--expert-model-parallel-size 8", "--expert-tensor-parallel-size 1"}) {
    CAPTURE(line);
    CHECK(has(text, line));
  }
}

TEST_CASE("torchtitan and DeepSpeed are given what they can express") {
  const std::string titan =
      torchtitan_config(planned("stages: 4, replicas: 2, group: {tensor: 4, sequence: true}, shard: weights", "gpipe"))
          .text;
  for (const char* line :
       {"local_batch_size = 16", "global_batch_size = 32", "data_parallel_shard_degree = 2",
        "tensor_parallel_degree = 4", "pipeline_parallel_degree = 4", "pipeline_parallel_schedule = \"GPipe\"",
        "fsdp_reshard_after_forward = \"never\"", "mode = \"none\""}) {
    CAPTURE(line);
    CHECK(has(titan, line));
  }
  const std::string speed =
      deepspeed_config(planned("stages: 2, replicas: 16, shard: optimizer", "1f1b", "gpt2-xl")).text;
  CHECK(speed.find("\"train_batch_size\": 256") != std::string::npos);
  CHECK(speed.find("\"gradient_accumulation_steps\": 16") != std::string::npos);
  CHECK(speed.find("{\"stage\": 1}") != std::string::npos);
  CHECK(speed.find("\"stages\": 2") != std::string::npos);
}

TEST_CASE("what a framework cannot express is refused with the reason") {
  const auto tensor = planned("stages: 4, replicas: 1, group: {tensor: 8, sequence: true}", "zb-h1");
  CHECK(refuses(megatron_arguments, tensor, "Megatron-LM does not run the schedule 'zb-h1'"));
  CHECK(refuses(megatron_arguments, planned("stages: 2, replicas: 32, placement: loop", "interleaved", "gpt2-xl"),
                "Megatron-LM does not interleave the stages of a single rank"));
  CHECK(refuses(torchtitan_config, tensor, "torchtitan does not run the schedule 'zb-h1'"));
  CHECK(refuses(deepspeed_config, tensor,
                "DeepSpeed's configuration has no such tensor, context or expert group: the model's code makes them"));
  CHECK(refuses(megatron_arguments, planned("stages: 2, replicas: 16, recompute: full", "1f1b", "gpt2-xl"),
                "Megatron-LM recomputes layer by layer, not a whole stage before its backward"));
  CHECK(refuses(torchtitan_config, planned("stages: 2, replicas: 16, shard: optimizer", "1f1b", "gpt2-xl"),
                "torchtitan divides weights with everything else, or nothing"));
  CHECK(refuses(deepspeed_config, planned("stages: 2, replicas: 16, shard: gradients", "1f1b", "gpt2-xl"),
                "DeepSpeed 0.19.6 refuses this when it makes the pipeline (AssertionError): DeepSpeed's pipeline takes "
                "no ZeRO-2"));
}

TEST_CASE("arguments of Megatron-LM say what the software stack overlaps, and import takes the same stack") {
  const std::string tensor = "stages: 2, replicas: 4, group: {tensor: 4, sequence: true}, shard: ";
  const std::string experts = "stages: 1, replicas: 32, group: {expert: 8}, shard: optimizer";
  struct Row {
    const char* software;
    std::string plan;
    const char* model;
    std::vector<std::string> flags, absent;
  };
  const std::string mixtral = "{base: mixtral-8x7b, override: {sequence: 4096}}";
  for (const Row& row :
       {Row{"megatron-no-overlap",
            tensor + "optimizer",
            "llama-3-8b",
            {},
            {"--tp-comm-overlap", "--overlap-grad-reduce", "--overlap-param-gather"}},
        {"megatron-core",
         tensor + "optimizer",
         "llama-3-8b",
         {"--overlap-grad-reduce", "--overlap-param-gather"},
         {"--tp-comm-overlap"}},
        {"{base: megatron-core, overlap: {weights: false}, gradient_bytes: 2}",
         tensor + "optimizer",
         "llama-3-8b",
         {"--overlap-grad-reduce", "--grad-reduce-in-bf16"},
         {"--overlap-param-gather"}},
        {"{base: megatron-core, overlap: {experts: true, weight_gradients: true}}",
         experts,
         mixtral.c_str(),
         {"--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute"},
         {}},
        {"megatron-bridge",
         tensor + "optimizer",
         "llama-3-8b",
         {"--tp-comm-overlap", "--overlap-grad-reduce", "--overlap-param-gather", "--cross-entropy-loss-fusion"},
         {}},
        {"megatron-bridge", tensor + "none", "llama-3-8b", {"--overlap-grad-reduce"}, {"--overlap-param-gather"}},
        {"megatron-fsdp",
         tensor + "weights",
         "llama-3-8b",
         {"--use-megatron-fsdp", "--ckpt-format fsdp_dtensor", "--tp-comm-overlap"},
         {"--use-distributed-optimizer"}},
        {"megatron-bridge-overlap", experts, mixtral.c_str(), {"--overlap-moe-expert-parallel-comm"}, {}}}) {
    const std::string name = row.software;
    CAPTURE(name);
    const PlannedExperiment p = planned(row.plan, "1f1b", row.model, {"software=" + name});
    const std::string text = megatron_arguments(p).text;
    for (const std::string& flag : row.flags) CHECK_MESSAGE(has(text, flag), flag);
    for (const std::string& flag : row.absent) CHECK_FALSE_MESSAGE(has(text, flag), flag);
    const SoftwareStack again = stack_of(imported(p)), &stack = p.experiment.software();
    for (const Overlap f : overlap_features())
      if (f != Overlap::Messages && (f != Overlap::Tensor || p.plan.stages.front().shape.degrees.tensor > 1))
        CHECK_MESSAGE(again.overlap[f] == stack.overlap[f], name_of(f));
    CHECK(again.gradient_bytes == stack.gradient_bytes);
  }
  CHECK(
      refuses(megatron_arguments,
              planned("stages: 2, replicas: 4, group: {tensor: 4}", "1f1b", "llama-3-8b", {"software=megatron-bridge"}),
              "software: megatron-bridge hides collectives of the tensor group, and Megatron-LM refuses "
              "--tp-comm-overlap without sequence parallelism (AssertionError) = group: {sequence: true}"));
  CHECK(notes(megatron_arguments(planned("stages: 1, replicas: 32", "1f1b", "gpt2-xl", {"software=torchtitan"})),
              "not written: software: torchtitan, for which Megatron-LM has no arguments"));
}

TEST_CASE("latent attention, shared experts, dense layers and next-token modules are the same after import") {
  const PlannedExperiment p =
      planned("stages: 1, replicas: 32, group: {expert: 32}, shard: optimizer", "1f1b",
              "{base: deepseek-v3, override: {layers: 4, sequence: 4096, next_tokens: 1}}", {"software=megatron-core"});
  const TrainingSetup setup = imported(p);
  const auto field = [&](const std::string& name) {
    for (const auto& [key, value] : setup.model)
      if (key == name) return value;
    return std::string();
  };
  CHECK(field("latent") == "{query: 1536, key_value: 512, rope: 64, nope: 128, value: 128}");
  CHECK(field("experts") == "{count: 256, active: 8, width: 2048, shared: 1, first_dense: 3, nodes: 4, groups: 8}");
  CHECK(field("next_tokens") == "1");
  CHECK(field("feed_forward") == "18432");
  CHECK(field("tied") == "false");  // The next-token module shares the head, and the embedding does not.
  CHECK(setup.unmodeled.empty());
}

TEST_CASE("arguments of Megatron-LM keep number formats, vocabulary and attention") {
  const auto text = [](const std::string& precision) {
    return megatron_arguments(planned("stages: 1, replicas: 16", "1f1b", "gpt2-xl",
                                      {"cluster=dgx-b200-x2", "run.precision=" + precision}))
        .text;
  };
  CHECK(has(text("nvfp4"), "--fp4-format e2m1"));
  CHECK(has(text("nvfp4"), "--fp4-recipe nvfp4"));
  CHECK(has(text("fp8"), "--fp8-recipe tensorwise"));
  CHECK(has(text("mxfp8"), "--fp8-recipe mxfp8"));
  for (const char* precision : {"nvfp4", "fp8", "mxfp8", "bf16", "fp16", "fp32"})
    CHECK(read_megatron(text(precision), "a", {"", "dgx-b200-x2", 16, 0}).precision == precision);
  // 50257 is no multiple of 128, to which Megatron-LM would pad it.
  CHECK(has(text("bf16"), "--make-vocab-size-divisible-by 1"));
  const PlannedExperiment p = planned("stages: 1, replicas: 4, group: {tensor: 8, sequence: true}", "1f1b", "gpt2-xl",
                                      {"model={base: gpt2-xl, override: {flash_attention: false, heads: 8}}"});
  CHECK(notes(megatron_arguments(p), "pads the vocabulary of 50257 to 50264, a multiple of tensor 8"));
  CHECK(has(megatron_arguments(p).text, "--attention-backend unfused"));
}

TEST_CASE("what Megatron-LM refuses is not written, and the smallest change that it accepts is named") {
  const auto interleaved = [](int micro_batches, const std::string& group) {
    return planned("stages: 8, replicas: 2, group: {tensor: 4, sequence: true}",
                   "{name: interleaved, chunks: 2" + group + "}", "llama-3-8b",
                   {fmt::format("run.micro_batches={}", micro_batches)});
  };
  CHECK(refuses(
      megatron_arguments, interleaved(3, ""),
      "Megatron-LM 0.20 refuses this at the first step (ValueError): 3 micro-batches with virtual stages, which "
      "need 4 or more on 4 pipeline ranks = --global-batch-size 8, which is run.global_batch"));
  CHECK(refuses(
      megatron_arguments, interleaved(9, ""),
      "Megatron-LM 0.20 refuses this at the first step (RuntimeError): 9 micro-batches leave 1 in the last group "
      "of 4, fewer than the 4 pipeline ranks = --global-batch-size 24, which is run.global_batch; or "
      "run.schedule.group: 5"));
  CHECK(has(megatron_arguments(interleaved(9, ", group: 5")).text,
            "--microbatch-group-size-per-virtual-pipeline-stage 5"));
  CHECK(refusal(megatron_arguments, interleaved(8, "")) == "written");
}

TEST_CASE("a last norm that is not with the scores is refused, because Megatron-LM would move it") {
  const std::string schedule = "{name: interleaved, chunks: 2}";
  const PlannedExperiment p = planned("stages: 16, replicas: 1", schedule, "gpt-1.3b");
  const std::string text = refusal(megatron_arguments, p), start = "plan.planner: layout, plan.layout: \"";
  CHECK(
      text.starts_with("Megatron-LM has the embedding in the first stage, and the last norm, the scores and the loss"));
  const std::size_t begin = text.find(start) + start.size();
  const std::string layout = text.substr(begin, text.find('"', begin) - begin);
  CHECK(layout.ends_with("|L"));
  const PlannedExperiment again = plan_experiment(
      load_experiment("examples/llama-3-8b-4x8", {"model=gpt-1.3b", "plan={layout: \"" + layout + "\", replicas: 1}",
                                                  "run={schedule: " + schedule + ", micro_batches: 16}"}));
  CHECK(has(megatron_arguments(again).text, "--pipeline-model-parallel-layout \"" + layout + "\""));
}

TEST_CASE("torchtitan is given the modules of each stage, and what it refuses is not written") {
  const std::string weights = "replicas: 2, group: {tensor: 4, sequence: true}, shard: weights";
  const std::vector<std::string> titan{"software=torchtitan"};
  const std::string text =
      torchtitan_config(planned("stages: 12, " + weights, "{name: interleaved, chunks: 3}", "llama-3-8b", titan)).text;
  const std::size_t begin = text.find("module_fqns_per_model_part = ");
  REQUIRE(begin != std::string::npos);
  const std::string parts = text.substr(begin, text.find('\n', begin) - begin);
  CHECK(parts.starts_with("module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.0\""));
  CHECK(parts.ends_with("\"layers.31\", \"norm\", \"output\"]]"));
  CHECK(std::count(parts.begin(), parts.end(), ']') == 13);
  const std::string async = torchtitan_config(planned("stages: 1, replicas: 8, group: {tensor: 4, sequence: true}, "
                                                      "shard: weights",
                                                      "1f1b", "llama-3-8b", {"software=torchtitan-async-tp"}))
                                .text;
  CHECK(has(async, "enable_async_tensor_parallel = true"));
  CHECK(refuses(torchtitan_config, planned("stages: 4, replicas: 2, group: {tensor: 4, sequence: true}", "gpipe"),
                "torchtitan refuses this when it parallelizes the model (RuntimeError): replicas without divided "
                "weights go with no other parallelism = shard: weights"));
  CHECK(refuses(torchtitan_config, planned("stages: 4, " + weights, "1f1b", "llama-3-8b", {"run.micro_batches=3"}),
                "torchtitan refuses this when it builds the schedule (ValueError): 3 micro-batches on 4 stages = "
                "run.micro_batches: 4"));
  CHECK(
      refuses(torchtitan_config,
              planned("stages: 8, " + weights, "{name: interleaved, chunks: 2}", "llama-3-8b", {"run.micro_batches=9"}),
              "torchtitan refuses this when it builds the schedule (ValueError): 9 micro-batches cannot be divided "
              "into 2 rounds = run.micro_batches: 12"));
  CHECK(refuses(torchtitan_config,
                planned("stages: 2, " + weights + ", recompute: selective", "1f1b",
                        "{base: llama-3-8b, override: {flash_attention: false}}"),
                "torchtitan does not recompute the inside of attention alone = recompute: half, layers or none"));
}

TEST_CASE("DeepSpeed is given the recomputation of a pipeline, and what it cannot be given is noted") {
  const auto deepspeed = [](const std::string& plan, const std::vector<std::string>& more = {}) {
    return deepspeed_config(planned(plan, "1f1b", "gpt2-xl", more));
  };
  const std::string full = deepspeed("stages: 4, replicas: 8, recompute: full").text;
  CHECK(full.find("\"pipeline\": {\"stages\": 4, \"activation_checkpoint_interval\": 53}") != std::string::npos);
  CHECK(read_deepspeed(full, "ds.json", {"gpt2-xl", "superpod-h100-256", 0, 0}).recompute == "full");
  const std::string layers = deepspeed("stages: 4, replicas: 8, recompute: layers").text;
  CHECK(layers.find("\"activation_checkpoint_interval\": 1}") != std::string::npos);
  CHECK(read_deepspeed(layers, "ds.json", {"gpt2-xl", "superpod-h100-256", 0, 0}).recompute == "layers");
  CHECK(deepspeed("stages: 4, replicas: 8").text.find("interval") == std::string::npos);
  CHECK(notes(deepspeed("stages: 1, replicas: 32, recompute: layers"),
              "not written: plan.recompute: layers, which the model's code does"));
  CHECK(notes(deepspeed("stages: 4, replicas: 8"), "PipelineModule(num_stages=4)"));
  const std::string buckets =
      deepspeed("stages: 1, replicas: 32, shard: optimizer", {"run.gradient_buckets=100 MB", "software=megatron-2021"})
          .text;
  CHECK(buckets.find("\"overlap_comm\": true, \"reduce_bucket_size\": 50000000}") != std::string::npos);
  CHECK(refuses(deepspeed_config, planned("stages: 1, replicas: 32", "1f1b", "gpt2-xl", {"run.precision=fp8"}),
                "DeepSpeed's configuration has no fp8: the model's code makes it = run.precision: bf16, fp16 or fp32"));
}

}  // namespace stagecraft::frameworks_test
