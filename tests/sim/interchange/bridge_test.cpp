// Recipes of Megatron-Bridge with overrides: which setup they become, and what is refused.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/bridge.hpp"

namespace stagecraft::bridge_test {
namespace {

constexpr const char* kDense = "llama3_70b_pretrain_64gpu_h100_bf16_config";
constexpr const char* kExperts = "deepseek_v3_pretrain_256gpu_b200_bf16_config";

TrainingSetup read(const std::string& text) { return read_bridge(text, "overrides.txt", {.cluster = "superpod-b200"}); }

Diagnostic problem(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& e) {
    return e.problems().front();
  }
  return {};
}

bool has_note(const std::vector<std::string>& notes, std::string_view text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("a recipe alone is the row of recipes.csv, however it is named") {
  for (const std::string& text : {std::string(kDense), std::string("run_recipe.py --recipe ") + kDense,
                                  std::string("torchrun run_recipe.py \\\n  --recipe=") + kDense}) {
    const TrainingSetup s = read(text);
    CHECK(s.tensor == 4);
    CHECK(s.ranks == 4);
    CHECK(s.chunks == 5);
    CHECK(s.replicas == 2);
    CHECK(s.global_batch == 256);
    CHECK(s.precision == "bf16");
    CHECK(s.gradient_bytes == 2);
  }
}

TEST_CASE("an override takes the place of the recipe's value, and notes name it as it was given") {
  const TrainingSetup s = read(std::string(kDense) +
                               " model.tensor_model_parallel_size=8 model.pipeline_model_parallel_size=2 "
                               "train.global_batch_size=512 ddp.grad_reduce_in_fp32=true logger.log_interval=10");
  CHECK(s.tensor == 8);
  CHECK(s.ranks == 2);
  CHECK(s.global_batch == 512);
  CHECK(s.gradient_bytes == 0);
  CHECK(has_note(s.matched, "model.tensor_model_parallel_size -> plan.group.tensor: 8"));
  CHECK(has_note(s.without_use, "logger.log_interval"));
  const TrainingSetup without = read(std::string(kDense) + " model.sequence_parallel=false");
  CHECK(!without.sequence_parallel);
  CHECK(has_note(without.assumed, "switches comm_overlap.tp_comm_overlap off"));
  CHECK(read(std::string(kDense) + " mixed_precision=bf16_with_mxfp8_mixed").precision == "mxfp8");
  CHECK(read(std::string(kDense) + " dataset.sequence_length=4096").model != read(std::string(kDense)).model);
}

TEST_CASE("another pipeline leaves the layout of the recipe out") {
  CHECK(!read(kExperts).layout.empty());
  CHECK(read(std::string(kExperts) + " model.pipeline_model_parallel_layout='Et*4|(t*4|)*14tmL'").layout ==
        read(kExperts).layout);
  CHECK(problem(std::string(kExperts) + " model.pipeline_model_parallel_size=8").message.find("61") !=
        std::string::npos);
}

TEST_CASE("options of the launcher say how many GPUs there are, and samples of a replica are kept") {
  const std::string train =
      std::string("./scripts/training/train.sh --nodes 16 --gpus-per-node 8 --mode pretrain --recipe ") + kDense;
  const TrainingSetup s = read(train);
  CHECK(s.replicas == 4);  // 128 GPUs in place of 64, of which 2 replicas have 256 samples.
  CHECK(s.global_batch == 512);
  CHECK(has_note(s.assumed, "512 for 4 replicas in place of 256 for 2"));
  CHECK(has_note(s.without_use, "--mode pretrain"));
  CHECK(read(train + " -gb 256").global_batch == 256);
  CHECK(read(train + " train.global_batch_size=1024 -gb 256").global_batch == 1024);
  CHECK(read(std::string("run_recipe.py -ng 32 -tp 2 --context_parallel_size=1 --recipe ") + kDense).replicas == 4);
  CHECK(read(std::string(kDense) + " -tp 8 -cp 1 -sl 4096").model != read(kDense).model);
  CHECK(problem(train + " -ng 64").path == "--nodes");
  CHECK(problem(std::string("--nodes 8 --recipe ") + kDense).message == "the GPUs of a node are not given");
  CHECK(problem(std::string("--nodes many --gpus-per-node 8 --recipe ") + kDense).message ==
        "'--nodes many' is no whole number from 1 to 1000000");
  CHECK(problem(std::string("-ng 0 --recipe ") + kDense).message == "'-ng 0' is no whole number from 1 to 1000000");
  CHECK(problem(std::string("--nodes 1000000 --gpus-per-node 1000000 --recipe ") + kDense).message ==
        "1000000000000 GPUs are more than 1000000");
}

TEST_CASE("ddp overlaps with a distributed optimizer whatever it says, and comm_overlap decides") {
  const TrainingSetup usual = read(kDense), overruled = read(std::string(kDense) + " ddp.overlap_grad_reduce=false");
  CHECK(overruled.overlap == usual.overlap);
  CHECK(has_note(overruled.assumed, "comm_overlap.overlap_grad_reduce decides"));
  const TrainingSetup without =
      read(std::string(kDense) + " comm_overlap.overlap_grad_reduce=false comm_overlap.overlap_param_gather=false");
  CHECK(without.overlap != usual.overlap);
  // Whichever comes first, ddp decides where optimizer states are whole.
  const std::string whole = " ddp.use_distributed_optimizer=false", off = " ddp.overlap_grad_reduce=false";
  for (const std::string& both : {whole + off, off + whole}) {
    const TrainingSetup s = read(kDense + both);
    CHECK(s.overlap != usual.overlap);
    CHECK(!has_note(s.assumed, "decides"));
  }
  for (const char* comm : {" comm_overlap.overlap_grad_reduce=false ddp.overlap_grad_reduce=true",
                           " ddp.overlap_grad_reduce=true comm_overlap.overlap_grad_reduce=false"})
    CHECK(has_note(read(std::string(kDense) + comm).assumed, "overrules ddp.overlap_grad_reduce=true"));
  CHECK(problem(std::string(kDense) + " ddp.overlap_grad_reduce=junk").help == "true or false");
}

TEST_CASE("some keys count together with another one") {
  const std::string layers = " model.cpu_offloading_num_layers=20",
                    whole = " model.pipeline_model_parallel_size=1 -vp null";
  const TrainingSetup off = read(kDense + whole + layers + " model.cpu_offloading=false"),
                      on = read(kDense + whole + layers + " model.cpu_offloading=true");
  CHECK(has_note(off.assumed, "passes over model.cpu_offloading_num_layers=20 without model.cpu_offloading=true"));
  CHECK(has_note(read(kDense + whole + layers).assumed, "passes over model.cpu_offloading_num_layers=20"));
  CHECK(!has_note(off.unmodeled, "cpu-offloading-num-layers"));
  CHECK(has_note(on.unmodeled, "model.cpu_offloading_num_layers, as the cluster has no `host`"));
  CHECK(problem(std::string(kDense) + " model.cpu_offloading=5").help == "true or false");
  const std::string fsdp = " dist.use_megatron_fsdp=";
  CHECK(read(kDense + fsdp + "true").shard == "weights");
  CHECK(read(kDense + fsdp + "true ddp.use_megatron_fsdp=false").shard == "weights");
  CHECK(read(kDense + fsdp + "false ddp.use_megatron_fsdp=true").shard == "weights");
  CHECK(read(kDense + fsdp + "false").shard == "optimizer");
  CHECK(has_note(read(kDense + std::string(" dist.use_torch_fsdp2=true")).unmodeled, "dist.use_torch_fsdp2=true"));
}

TEST_CASE("unknown recipes and overrides are refused with the nearest name") {
  CHECK(problem("llama3_70b_pretrain_64gpu_h100_bf16_cfg_config").message.find("there is no recipe") !=
        std::string::npos);
  CHECK(problem("llama3_70b_pretrain_64gpu_h100_bf15_config").help.find(kDense) != std::string::npos);
  CHECK(problem(std::string(kDense) + " tensor_model_parallel_size=8").help ==
        "the section before it, such as model.tensor_model_parallel_size");
  CHECK(problem(std::string(kDense) + " =8").message.find("not known here") != std::string::npos);
  std::string script = "#!/bin/bash\n";
  for (int i = 0; i < 1000; ++i) script += "if ";
  CHECK(problem(script).message.find("nested too deep") != std::string::npos);
  CHECK(problem(script).where.file == "overrides.txt");
  const std::string launch = std::string("python run_recipe.py ") + kDense + " model.tensor_model_parallel_size=$T\n";
  CHECK(read("#!/bin/bash\nT=2\nsource ./env_config.sh\nmkdir -p x_config\n" + launch).tensor == 2);
  CHECK(has_note(read("#!/bin/bash\nif a; then T=1; else T=2; fi\n" + launch).assumed, "so T is '2'"));
  CHECK(read(std::string("#!/bin/bash\n") + "# A recipe and its overrides.\n" + kDense).tensor == 4);
  CHECK(problem(std::string(kDense) + " model.sequence_parallel=maybe").help == "true or false");
  CHECK(read(std::string(kDense) + " ddp.use_megatron_fsdp=true ddp.use_distributed_optimizer=false").shard ==
        "weights");
  CHECK(read(std::string("CUDA_DEVICE_MAX_CONNECTIONS=1 ") + kDense).tensor == 4);
  const auto refused = [](const std::string& more) {
    return problem(std::string(kDense) + more).message.find("not known here") != std::string::npos;
  };
  CHECK(refused(" model.tensor_model_parallel_size 8"));
  CHECK(refused(" llama3_8b_pretrain_8gpu_h100_bf16_config"));
  CHECK(refused(" ~model.tensor_model_parallel_size"));
  CHECK(refused(" --sequence 4096"));
  CHECK(refused(" trian.micro_batch_size=2"));
  CHECK(problem(std::string(kDense) + " train.tensor_model_parallel_size=8").help ==
        "did you mean 'model.tensor_model_parallel_size'?");
  CHECK(problem(std::string(kDense) + " train.global_batch_size=-1").path == "train.global_batch_size");
  CHECK(read(std::string(kDense) + "\n++train.global_batch_size=512 # model.context_parallel_size=1").context == 2);
  CHECK(read(std::string(kDense) + " ++train.global_batch_size=512").global_batch == 512);
  CHECK(read(std::string(kDense) + " ddp.grad_reduce_in_fp32=null").gradient_bytes == 2);
  CHECK(read(std::string(kDense) + " model.recompute_granularity=selective model.recompute_modules=[core_attn, mlp]")
            .recompute == "[mlp]");
  CHECK(read(std::string(kDense) + " model.recompute_granularity=selective \"model.recompute_modules=[layernorm]\"")
            .recompute == "[layernorm]");
  CHECK(problem("train.micro_batch_size=1").message == "no recipe is named");
  CHECK(problem("nonsense_config").code == kUnknownRecipe);
  CHECK(has_note(read(std::string(kDense) + " dataset.enable_offline_packing=true").unmodeled, "offline_packing=true"));
  CHECK(problem(std::string(kDense) + " model.tensor_model_paralel_size=8").help ==
        "did you mean 'model.tensor_model_parallel_size'?");
  CHECK(problem(std::string(kDense) + " mixed_precision=fp9_mixed").message.find("not known here") !=
        std::string::npos);
  CHECK(problem(std::string(kDense) + " peft.dim=8").help.find("adapters are not modeled") != std::string::npos);
}

TEST_CASE("keys that no option stands for are notes by what they change, and mistyped ones are not") {
  const auto with = [](const char* more) { return read(std::string(kDense) + " " + more); };
  CHECK(has_note(with("model.bias_activation_fusion=false").unmodeled_time, "model.bias_activation_fusion=false"));
  CHECK(has_note(with("comm_overlap.batch_p2p_comm=true").unmodeled_time, "comm_overlap.batch_p2p_comm=true"));
  CHECK(has_note(with("ddp.keep_fp8_transpose_cache=true").unmodeled_memory, "ddp.keep_fp8_transpose_cache=true"));
  CHECK(has_note(with("model.logit_dtype=bf16").unmodeled, "model.logit_dtype=bf16"));
  CHECK(has_note(with("ddp.check_for_nan_in_grad=false").without_use, "ddp.check_for_nan_in_grad"));
  CHECK(has_note(with("rerun_state_machine.rerun_mode=disabled").without_use, "rerun_state_machine.rerun_mode"));
  CHECK(has_note(with("model.apply_rope_fusion=false").unmodeled_time, "model.apply_rope_fusion"));
  CHECK(with("mixed_precision.grad_reduce_in_fp32=true").gradient_bytes == 0);
  CHECK(with("dist.use_tp_pp_dp_mapping=true").order == "tp-cp-ep-pp-dp");
  CHECK(with("ddp.bucket_size=1000000").gradient_buckets == "2000000 B");
  CHECK(problem(std::string(kDense) + " model.bias_activation_fusoin=false").help ==
        "did you mean 'model.bias_activation_fusion'?");
}

TEST_CASE("a recipe that is not here is answered with the nearest one") {
  CHECK(problem("llama3_70b_64gpu_h100_bf16").message.find("there is no recipe") != std::string::npos);
  CHECK(problem("llama3_70b_64gpu_h100_bf16_pretrain_config")
            .help.find("the nearest is 'llama3_70b_pretrain_64gpu_h100_bf16_config'") != std::string::npos);
  CHECK(problem("nonsense_config").help.find("nearest") == std::string::npos);
}

}  // namespace stagecraft::bridge_test
