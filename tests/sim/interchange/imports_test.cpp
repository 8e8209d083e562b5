// What configurations of training frameworks become here.

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "sim/core/text.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/huggingface.hpp"
#include "sim/interchange/imports/toml.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "tests/support/files.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::imports_test {
namespace {

using test::mentions, test::refusal;

const SetupOptions kMachines{"", "superpod-h100-256", 16, 0};

PlannedExperiment planned_from(const std::string& yaml) {
  return plan_experiment(load_experiment(test::own_file("imports_test.yaml", yaml), {}));
}

PlannedExperiment planned(const std::string& plan, const std::string& schedule, const std::string& model) {
  return plan_experiment(
      load_experiment("examples/llama-3-8b-4x8",
                      {"model=" + model, "cluster=superpod-h100-256", "plan={planner: balanced, " + plan + "}",
                       "run={schedule: " + schedule + ", micro_batches: 16, iterations: 3}"}));
}

constexpr const char* kArguments =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
    "--vocab-size 50304 --micro-batch-size 4 --global-batch-size 64 ";

}  // namespace

TEST_CASE("Megatron-LM's arguments of a plan lead back to the same arguments") {
  for (const auto& [plan, schedule, model] :
       {std::tuple{"stages: 2, replicas: 2, micro_batch_size: 4, group: {tensor: 4, sequence: true}, shard: optimizer",
                   "1f1b", "llama-3-8b"},
        {"stages: 4, replicas: 4, micro_batch_size: 8, recompute: layers", "interleaved", "llama-2-7b"},
        {"stages: 4, replicas: 4, micro_batch_size: 4", "1f1b", "gpt-1.3b"},
        {"stages: 2, replicas: 8, micro_batch_size: 8, group: {expert: 8}", "1f1b", "mixtral-8x7b"},
        {"stages: 2, replicas: 4, micro_batch_size: 4, group: {context: 2}", "1f1b", "llama-3-8b"},
        {"stages: 1, replicas: 8, micro_batch_size: 8, group: {context: 2}, shard: {state: optimizer, within: 4}",
         "1f1b, gradient_buckets: software", "llama-3-8b"},
        {"stages: 2, replicas: 4, micro_batch_size: 4, group: {tensor: 2, sequence: true}, recompute: outputs",
         "1f1b, gradient_buckets: 100 MB", "mixtral-8x7b"}}) {
    const std::string name = model;  // clang 14 captures no structured binding.
    CAPTURE(name);
    const std::string arguments = megatron_arguments(planned(plan, schedule, model)).text;
    const TrainingSetup setup = read_megatron(arguments, "arguments", kMachines);
    CHECK(megatron_arguments(planned_from(scenario_yaml(setup, kMachines, "arguments"))).text == arguments);
  }
}

TEST_CASE("Gradients are summed in buckets where Megatron-LM and DeepSpeed do so") {
  const auto megatron = [](const char* more) {
    return read_megatron(std::string(kArguments) + more, "a.sh", kMachines);
  };
  CHECK(megatron("--use-distributed-optimizer").gradient_buckets.empty());
  CHECK(megatron("--overlap-grad-reduce").gradient_buckets == "software");
  // Megatron-LM counts parameters, and its gradients are in fp32.
  const TrainingSetup sized = megatron("--overlap-grad-reduce --ddp-bucket-size 134217728 ");
  CHECK(sized.gradient_buckets == "536870912 B");
  CHECK(scenario_yaml(sized, kMachines, "a.sh").find("gradient_buckets: 536870912 B") != std::string::npos);
  CHECK(mentions(megatron("--overlap-grad-reduce --ddp-bucket-size 8 --pipeline-model-parallel-size 2").assumed,
                 "first pipeline rank alone"));
  const TrainingSetup without = megatron("--ddp-bucket-size 8");
  CHECK(without.gradient_buckets.empty());
  CHECK(mentions(without.without_use, "--ddp-bucket-size 8"));
  const TrainingSetup fsdp = megatron("--overlap-grad-reduce --use-megatron-fsdp --ckpt-format fsdp_dtensor");
  CHECK(fsdp.gradient_buckets.empty());
  CHECK(mentions(fsdp.matched, "--overlap-grad-reduce -> software.overlap.gradients: true"));
  CHECK(refusal([&] { megatron("--overlap-grad-reduce --ddp-bucket-size 1e9"); }).find("which is no whole number") !=
        std::string::npos);

  const auto deepspeed = [](const std::string& zero) {
    SetupOptions options = kMachines;
    options.model = "gpt2-small";
    return read_deepspeed("{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {" + zero + "}}", "ds.json", options);
  };
  // DeepSpeed counts gradients, of two bytes, and takes 5e8 where no number is given.
  CHECK(deepspeed("\"stage\": 1, \"overlap_comm\": true, \"reduce_bucket_size\": 2e8").gradient_buckets ==
        "400000000 B");
  CHECK(deepspeed("\"stage\": 1, \"overlap_comm\": true").gradient_buckets == "1000000000 B");
  CHECK(deepspeed("\"stage\": 1, \"reduce_bucket_size\": 2e8").gradient_buckets.empty());
  const TrainingSetup each_backward = deepspeed("\"stage\": 2, \"overlap_comm\": true");
  CHECK(each_backward.gradient_buckets.empty());
  CHECK(mentions(each_backward.unmodeled, "overlap_comm"));
  CHECK(mentions(deepspeed("\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}").unmodeled,
                 "zero_optimization.offload_optimizer"));  // The cluster has no memory of hosts.
  CHECK(mentions(deepspeed("\"stage\": 2, \"offload_optimizer\": {\"device\": \"none\"}").without_use,
                 "offload_optimizer, whose device is none"));
  CHECK(deepspeed("\"stage\": 3, \"mics_shard_size\": -1").shard == "weights");
  CHECK(deepspeed("\"stage\": 3, \"mics_shard_size\": 8").shard == "{state: weights, within: 8}");
  const TrainingSetup without_mics = deepspeed("\"stage\": 2, \"mics_shard_size\": 8");
  CHECK(without_mics.shard == "gradients");
  CHECK(mentions(without_mics.without_use, "zero_optimization.mics_shard_size"));
  CHECK(refusal([] {
          read_deepspeed("{\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 1000000}", "ds.json",
                         kMachines);
        }).find("a batch of more than 1000000 samples, which is not modeled") != std::string::npos);
  CHECK(refusal([] { read_deepspeed("{\"pipeline\": {\"stages\": 0}}", "ds.json", {}); }).find("at least one stage") !=
        std::string::npos);
  CHECK(refusal([&] {
          deepspeed("\"stage\": 1, \"overlap_comm\": true, \"reduce_bucket_size\": -1");
        }).find("no number from 1") != std::string::npos);
}

TEST_CASE("DeepSpeed's file may have comments, and what Hugging Face's Trainer puts into it is asked for") {
  const auto read = [](const std::string& text) { return read_deepspeed(text, "ds.json", kMachines); };
  const TrainingSetup s = read(
      "// a\n{\"train_batch_size\": 32, # b \"\n \"bf16\": {\"enabled\": true, /* c, */},"
      " \"wandb\": {\"project\": \"a // b, }\"},\n}");
  CHECK(s.global_batch == 32);
  CHECK(s.precision == "bf16");
  CHECK(refusal([&] { read("# a\n{\"x\": 1,\n\"y\" 2}"); }).find("line 3") != std::string::npos);
  for (const char* text : {"{\"train_batch_size\": 32, \"bf16\": {\"enabled\": \"auto\"}}",
                           "{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\"}"})
    CHECK(refusal([&] { read(text); }).find("Hugging Face's Trainer has the value of 'auto'") != std::string::npos);
  CHECK(read("{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": \"auto\"}").micro_batch_size == 2);
  CHECK(refusal([&] {
          read("{\"fp16\": {\"enabled\": \"auto\"}, \"bf16\": {\"enabled\": \"auto\"}}");
        }).find("as the Trainer has --bf16 or --fp16") != std::string::npos);
  CHECK(refusal([&] { read("{\"expert_parallel\": {\"enabled\": \"auto\"}}"); }).find("neither true nor false") !=
        std::string::npos);
  for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu"})
    CHECK(refusal([&] { read("{\"" + std::string(key) + "\": \"auto\"}"); }).find("its per_device_train_batch_size") !=
          std::string::npos);
  CHECK(read("{/*/ \"bf16\": 1, */ \"train_batch_size\": 32}").global_batch == 32);
}

TEST_CASE("Options of Megatron-LM that become what a scenario says in other words") {
  const auto read = [](const std::string& more) { return read_megatron(kArguments + more, "a.sh", kMachines); };
  const auto field = [](const TrainingSetup& s, const std::string& name) -> std::string {
    for (const auto& [key, value] : s.model)
      if (key == name) return value;
    return "";
  };
  // 50304 are 393 times 128; with two devices the next multiple of 256 is 50432.
  CHECK(field(read("--make-vocab-size-divisible-by 128"), "vocabulary") == "50304");
  CHECK(field(read("--make-vocab-size-divisible-by 128 --tensor-model-parallel-size 2"), "vocabulary") == "50432");

  const TrainingSetup copies = read("--use-distributed-optimizer --num-distributed-optimizer-instances 4");
  CHECK(scenario_yaml(copies, kMachines, "a.sh").find("shard: {state: optimizer, within: 4}") != std::string::npos);
  CHECK(refusal([&] {
          read("--use-distributed-optimizer --num-distributed-optimizer-instances 3");
        }).find("3 instances do not divide 16 GPUs") != std::string::npos);

  const std::string selective = "--recompute-granularity selective --recompute-modules ";
  CHECK(read(selective + "layernorm").recompute == "[layernorm]");
  CHECK(read(selective + "core_attn").recompute.empty());  // Attention is fused.
  CHECK(read(selective + "core_attn --attention-backend unfused").recompute == "selective");
  CHECK(read(selective + "mlp core_attn --attention-backend unfused").recompute == "[core_attn, mlp]");
  const TrainingSetup partly = read(selective +
                                    "[layernorm,mlp,core_attn] --num-experts 8 --moe-token-dispatcher-type flex "
                                    "--expert-model-parallel-size 8");
  CHECK(partly.recompute == "[layernorm, mlp]");
  CHECK(mentions(partly.matched, "--recompute-modules -> plan.recompute: [layernorm, mlp]"));
  CHECK(mentions(partly.assumed, "selective recomputation of core_attn frees nothing"));
  CHECK(partly.dispatcher == "per_node");
  CHECK(read(selective + "moe shared_experts").recompute == "[moe, shared_experts]");
  CHECK(refusal([&] { read(selective + "layer_norm"); }).find("did you mean 'layernorm'?") != std::string::npos);

  // Where experts are in groups, a token has some of these alone; padded experts have their capacity.
  const std::string experts = "--num-experts 8 --moe-token-dispatcher-type alltoall ";
  CHECK(field(read(experts + "--moe-router-num-groups 4 --moe-router-group-topk 2"), "experts")
            .find("nodes: 2, groups: 4") != std::string::npos);
  CHECK(mentions(read(experts + "--moe-router-num-groups 4").without_use, "--moe-router-num-groups 4 without"));
  CHECK(field(read(experts + "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity"), "experts")
            .find("capacity: 1.25") != std::string::npos);
  CHECK(mentions(read(experts + "--moe-expert-capacity-factor 1.25").unmodeled, "--moe-expert-capacity-factor 1.25"));
  CHECK(refusal([&] {
          read(experts + "--moe-expert-capacity-factor 0.5 --moe-pad-expert-input-to-capacity");
        }).find("a capacity from 1 to 1000 is modeled") != std::string::npos);

  CHECK(mentions(read("").assumed, "without --attention-dropout and --hidden-dropout Megatron-LM drops 10 %"));
  CHECK(mentions(read("--attention-dropout 0.0").matched, "--attention-dropout"));
  CHECK(mentions(read("--attention-dropout 0.05").unmodeled, "--attention-dropout 0.05"));
  const TrainingSetup old = read("--DDP-impl local --attention-dropout 0.1 --hidden-dropout 0");
  CHECK(old.software == "megatron-2021");
  CHECK(field(old, "flash_attention") == "false");
  CHECK(field(old, "attention_dropout") == "true");
  CHECK(mentions(old.unmodeled, "--hidden-dropout 0"));
  CHECK(read("--deepspeed").software == "megatron-deepspeed");
}

TEST_CASE("Every fact of a configuration of Hugging Face is in a note") {
  const std::string text =
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64,
          "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000,
          "hidden_act": "silu", "max_position_embeddings": 256, "rope_scaling": {"original_max_position_embeddings": 128},
          "torch_dtype": "bfloat16", "attention_dropout": 0.1, "pretraining_tp": 1, "brand_new_fact": 3})";
  const HuggingFaceModel read = read_huggingface(text, "config.json");
  REQUIRE(read.notes.size() == 5);
  CHECK(read.notes[4] == "samples have 128 tokens, as the configuration says; --sequence NUMBER takes others");
  CHECK(read.notes[0].starts_with("taken: model_type = llama, num_hidden_layers = 4, hidden_size = 64, "));
  CHECK(read.notes[1] == "may change time and memory, and is not modeled: attention_dropout = 0.1");
  CHECK(read.notes[2] ==
        "changes neither time nor memory: architectures, max_position_embeddings = 256, "
        "pretraining_tp = 1");
  CHECK(read.notes[3] == "not known here: brand_new_fact = 3");
  config::Problems problems;
  const config::Value model = config::parse_yaml(read.yaml, "model.yaml", problems);
  CHECK(problems.empty());
  CHECK(model.at("builder").text == "transformer");
  CHECK(model.at("sequence").text == "128");
  CHECK(model.at("key_value_heads").text == "2");
  CHECK(refusal([] { read_huggingface("{\"model_type\": \"mamba\"}", "c"); }).find("'mamba' cannot be read") !=
        std::string::npos);
}

TEST_CASE("names in an imported scenario have nothing that a reader does not see") {
  const std::string file =
      "a\xc2\x9b"
      "31m\n\"b\"";  // U+009B begins a command of a terminal.
  const std::string yaml = scenario_yaml(read_megatron(kArguments, "train.sh", kMachines), kMachines, file);
  CHECK(yaml.find("title: \"a\\u009b31m\\n\\\"b\\\": transformer ") != std::string::npos);
}

TEST_CASE("a cluster or a model that is not there is refused with the nearest name, whatever the framework") {
  TrainingSetup setup;
  setup.micro_batch_size = 1, setup.global_batch = 8, setup.schedule = "1f1b";
  const auto with = [&](const SetupOptions& options) {
    return refusal([&] { scenario_yaml(setup, options, "job.toml"); });
  };
  CHECK(with({"llama-3-8b", "superpod-h100-256"}) == "read");
  CHECK(with({"llama-3-8b", "superpod-h100-265"}).find("error: --cluster: there is no cluster 'superpod-h100-265'\n") !=
        std::string::npos);
  CHECK(with({"llama-3-8b", "superpod-h100-265"}).find("superpod-h100-272, or superpod-h100-x34 for 34 nodes") !=
        std::string::npos);
  CHECK(with({"llama-3-8b", "superpodh100-256"}).find("did you mean 'superpod-h100-256'?") != std::string::npos);
  CHECK(with({"llama-3-8b", "superpod-h100-64"}) == "read");
  CHECK(with({"llama-3-7b", "superpod-h100-256"}).find("error: --model-name: there is no model 'llama-3-7b'\n") !=
        std::string::npos);
  CHECK(with({"llama-3-8b", "star"}).find("error: --cluster star: cluster.groups: this field is missing") !=
        std::string::npos);
  // Paths begin at the folder of the scenario.
  const test::Folder folder;
  test::write_file(folder / "mine.yaml", "schema: cluster/1\nbase: superpod-h100-256\n");
  CHECK(with({"llama-3-8b", "mine.yaml", 0, 0, folder / "s.yaml"}) == "read");
  CHECK(with({"llama-3-8b", "mine.yaml"}).find("there is no cluster 'mine.yaml'") != std::string::npos);
}

TEST_CASE("torchtitan's configuration of a plan leads back to the same configuration") {
  for (const char* plan : {"stages: 1, replicas: 16, micro_batch_size: 16, shard: weights, recompute: layers",
                           "stages: 2, replicas: 2, micro_batch_size: 2, group: {tensor: 4, sequence: true}, shard: "
                           "{state: weights, reshard: false}"}) {
    const std::string text = torchtitan_config(planned(plan, "1f1b", "llama-3-8b")).text;
    SetupOptions options = kMachines;
    options.model = "llama-3-8b";
    const TrainingSetup setup = read_torchtitan(text, "job.toml", options);
    CHECK(setup.unmodeled.empty());
    CHECK(torchtitan_config(planned_from(scenario_yaml(setup, options, "job.toml"))).text == text);
  }
}

TEST_CASE("DeepSpeed's configuration of a plan leads back to the same configuration") {
  for (const char* plan : {"stages: 4, replicas: 4, micro_batch_size: 8, shard: optimizer",
                           "stages: 1, replicas: 16, micro_batch_size: 16, shard: weights"}) {
    const std::string text = deepspeed_config(planned(plan, "1f1b", "gpt-1.3b")).text;
    SetupOptions options = kMachines;
    options.model = "gpt-1.3b";
    const TrainingSetup setup = read_deepspeed(text, "ds.json", options);
    CHECK(deepspeed_config(planned_from(scenario_yaml(setup, options, "ds.json"))).text == text);
  }
}

TEST_CASE("A script of Megatron-LM is followed through variables, arrays and continued lines") {
  const TrainingSetup setup = read_megatron(R"(#!/bin/bash
GPUS_PER_NODE=8   # of each node
NNODES=${NNODES:-2}
TP=2
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096
    --num-attention-heads 32 --seq-length 4096 --vocab-size 32000
)
OTHERS="--lr 1e-4 --swiglu"
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py ${MODEL_ARGS[@]} $OTHERS \
    --tensor-model-parallel-size "${TP}" --pipeline-model-parallel-size=4 \
    --num-layers-per-virtual-pipeline-stage 4 --micro-batch-size 1 --global-batch-size 128 --bf16
)",
                                            "train.sh", {"", "superpod-h100-256", 0, 0});
  CHECK(setup.tensor == 2);
  CHECK(setup.ranks == 4);
  CHECK(setup.chunks == 2);    // 32 layers on 4 ranks, 4 on each virtual stage.
  CHECK(setup.replicas == 2);  // 16 GPUs.
  CHECK(setup.schedule == "interleaved");
  CHECK(setup.precision == "bf16");
  CHECK(mentions(setup.without_use, "--lr 1e-4"));
  CHECK(mentions(setup.matched, "--num-layers -> model.layers: 32"));
  // Megatron-LM: int(4 * 4096 * 2 / 3 / 64) * 64 for a gated unit.
  const auto width =
      std::find_if(setup.model.begin(), setup.model.end(), [](const auto& f) { return f.first == "feed_forward"; });
  CHECK(width->second == "10880");
}

TEST_CASE("What arguments do not say is asked for, and never guessed") {
  const auto megatron = [](const std::string& text) {
    return refusal([&] { scenario_yaml(read_megatron(text, "a.sh", kMachines), kMachines, "a.sh"); });
  };
  CHECK(megatron(kArguments) == "read");
  CHECK(megatron("echo hello").find("there is no --num-layers") != std::string::npos);
  CHECK(megatron("--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 8").find("--vocabulary NUMBER") !=
        std::string::npos);
  CHECK(megatron(kArguments + std::string("--tensor-model-parallel-size $TP"))
            .find("a.sh:1:1: error: --tensor-model-parallel-size: the value of $TP is not in the file") !=
        std::string::npos);
  CHECK(megatron(kArguments + std::string("--tensor-model-parallel-size 3"))
            .find("16 devices cannot be divided into groups of 3") != std::string::npos);
  CHECK(refusal([&] { scenario_yaml(read_megatron(kArguments, "a.sh", {}), {}, "a.sh"); }).find("--cluster NAME") !=
        std::string::npos);
  CHECK(mentions(read_megatron(kArguments, "a.sh", {}).assumed, "one replica"));
  const std::string selective = kArguments + std::string(" --recompute-activations");
  CHECK(read_megatron(selective, "a.sh", {}).recompute.empty());
  CHECK(mentions(read_megatron(selective, "a.sh", {}).assumed, "selective recomputation frees nothing"));
  CHECK(read_megatron(selective + " --attention-backend unfused", "a.sh", {}).recompute == "selective");
}

TEST_CASE("TOML") {
  const auto values =
      read_toml("# c\na = 1\n[t.u]\nb = \"x # y\" # z\nc = [1, [2.5, true],\n 'q']\nd.e = 1_000\n", "f");
  CHECK(values.at("a").value == Json(1));
  CHECK(values.at("t.u.b").value == Json("x # y"));
  CHECK(values.at("t.u.c").value.dump() == "[1,[2.5,true],\"q\"]");
  CHECK(values.at("t.u.d.e").value == Json(1000));
  CHECK(values.at("t.u.d.e").line == 7);
  for (const char* wrong :
       {"a", "a =", "a = 1 2", "a = \"x", "[a", "a = [1", "a = [1 2]", "a = 1\na = 2", "[[a]", "a = {b = 1"})
    CHECK_MESSAGE(refusal([&] { read_toml(wrong, "f"); }).starts_with("f:"), wrong);
  CHECK(refusal([] { read_toml("[a]\nb = 1\nc = many\n", "f"); }).starts_with("f:3:5: error: this is no TOML: "));
}

TEST_CASE("TOML: all forms that files may have") {
  const auto values = read_toml(
      "a = {b = 1, c.d = 'x'}\ne = \"\"\"\ntwo\nlines\"\"\"\nf = 1979-05-27\n[[g]]\nh = 0x10\n[[g]]\nh = \"\\u00e9\"\n",
      "f");
  CHECK(values.at("a.b").value == Json(1));
  CHECK(values.at("a.c.d").value == Json("x"));
  CHECK(values.at("e").value == Json("two\nlines"));
  CHECK(values.at("e").line == 2);
  CHECK(values.at("f").value == Json("1979-05-27"));
  CHECK(values.at("g").value.dump() == "[{\"h\":16},{\"h\":\"\u00e9\"}]");
}

TEST_CASE("TOML: what nests too deep is refused before it takes memory or stack") {
  std::string dots = "a", lists = "a = ";
  for (int i = 0; i < 100000; ++i) dots += ".a", lists += "[";
  CHECK(refusal([&] { read_toml(dots + " = 1", "f"); }).find("a key has more than 1000 parts") != std::string::npos);
  CHECK(refusal([&] { read_toml("[" + dots + "]\nb = 1", "f"); }).find("more than 1000 parts") != std::string::npos);
  CHECK(refusal([&] { read_toml(lists, "f"); }).starts_with("f:1:"));
}

}  // namespace stagecraft::imports_test
