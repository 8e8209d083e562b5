// Which rules about recomputation, host memory, CUDA graphs, number formats and FSDP the arguments of Megatron-LM 0.20
// break.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/offloaded_arrays.hpp"
#include "sim/interchange/imports/megatron_rules.hpp"

namespace stagecraft {
namespace {

void check_recomputation(MegatronRuleCheck& c) {
  const char* const number = "recompute-num-layers";
  if (c.granularity() == "full") {
    c.require(c.has("recompute-method"), "recompute-method", "recompute-granularity",
              "full recomputation needs --recompute-method", "--recompute-method uniform");
    c.require(c.has(number), "recompute-layers", "recompute-granularity",
              "full recomputation needs --recompute-num-layers", "--recompute-num-layers 1");
  }
  c.require(c.granularity() != "full" || !c.has("moe-layer-recompute"), "recompute-modules", "moe-layer-recompute",
            "layers are recomputed as a whole", "leave it out");
  if (c.granularity() != "selective") return;
  c.require(!c.recomputes("gdn_norm_out") || c.has("experimental-attention-variant"), "recompute-modules",
            "recompute-modules", "gdn_norm_out needs --experimental-attention-variant gdn", "leave it out");
  c.require(!c.recomputes("mhc") || c.has("enable-mhc-connections"), "recompute-modules", "recompute-modules",
            "mhc needs --enable-mhc-connections", "leave it out");
  c.require(!c.has("recompute-method"), "selective-method", "recompute-method", "selective recomputation takes none",
            "leave it out");
  c.require(!c.has(number), "selective-layers", number, "selective recomputation takes none", "leave it out");
  c.require(!c.recomputes("moe_act") || c.has("moe-grouped-gemm"), "recompute-modules", "recompute-modules",
            "moe_act needs --moe-grouped-gemm", "--moe-grouped-gemm");
  c.require(!c.recomputes("mla_up_proj") || c.has("multi-latent-attention"), "recompute-modules", "recompute-modules",
            "mla_up_proj needs latent attention", "leave it out");
  c.require(!c.is_delayed() || !(c.recomputes("layernorm") || c.recomputes("moe_act")), "recompute-fp8",
            "recompute-modules", "delayed scaling of fp8 excludes layernorm and moe_act", "--fp8-recipe tensorwise");
}

void check_offload(MegatronRuleCheck& c) {
  const char* const layers = "cpu-offloading-num-layers";
  const bool offloads_layers = c.has(layers) && c.word(layers) != "0";
  c.require(
      !offloads_layers || c.words().find_number(layers).value_or(0) < c.shape().layers, "offload", layers,
      fmt::format("the model has {}, of which one stays on the GPU at least", pluralize(c.shape().layers, "layer")),
      "fewer layers");
  c.require(!offloads_layers || c.setup().ranks == 1, "offload", layers, "layers are not offloaded in a pipeline",
            "--pipeline-model-parallel-size 1");
  c.require(!offloads_layers || c.granularity().empty(), "offload", layers, "offloaded layers are not recomputed",
            "leave one of them out");
  c.require(!offloads_layers || c.graphs().empty() || c.graphs() == "full_iteration", "offload", layers,
            "layers in CUDA graphs are not offloaded", "--cuda-graph-impl none");
  const char* const saved = "distribute-saved-activations";
  c.require(!c.has(saved) || (c.setup().tensor > 1 && c.granularity() == "full" && !c.setup().sequence_parallel),
            "saved-activations", saved, "it needs a tensor group, full recomputation and no sequence parallelism",
            "leave it out");
  const char* const optimizer = "optimizer-cpu-offload";
  c.require(!c.has(optimizer) || c.has("use-precision-aware-optimizer"), "optimizer-offload", optimizer,
            "it needs --use-precision-aware-optimizer", "--use-precision-aware-optimizer");
  c.require(!c.has(optimizer) || !c.has("fp8-param-gather") || c.is_delayed(), "optimizer-offload", optimizer,
            "weights in fp8 need delayed scaling with it", "--fp8-recipe delayed");
}

void check_offloaded_modules(MegatronRuleCheck& c) {
  const char* const activations = "fine-grained-activation-offloading";
  if (!c.has(activations)) return;
  const std::vector<std::string> modules = c.words().words("offload-modules");
  const auto has = [&](const char* m) { return std::find(modules.begin(), modules.end(), m) != modules.end(); };
  const auto rule = [&](bool holds, const std::string& why, const std::string& help) {
    c.require(holds, "activation-offload", activations, why, help);
  };
  rule(!modules.empty(), "no modules are named", "--offload-modules moe_act");
  std::vector<std::string> names = offload_modules();
  names.emplace_back("gdp_qkv");  // No model here has its layers.
  for (const std::string& module : modules)
    rule(std::find(names.begin(), names.end(), module) != names.end(), fmt::format("there is no module '{}'", module),
         suggest(module, names));
  const auto of_experts = std::count_if(modules.begin(), modules.end(), is_module_of_experts);
  rule(!c.recomputes("moe") || of_experts == 0, "experts are recomputed as a whole", "leave moe out of one of them");
  rule(!has("fused_group_mlp") || c.has("use-transformer-engine-op-fuser"),
       "fused_group_mlp needs --use-transformer-engine-op-fuser", "--use-transformer-engine-op-fuser");
  rule(!has("fused_group_mlp") || !(has("moe_act") || has("expert_fc1")),
       "fused_group_mlp has moe_act and expert_fc1 already", "--offload-modules fused_group_mlp");
  rule(!has("attn_proj") || has("core_attn"), "attn_proj needs core_attn", "--offload-modules core_attn attn_proj");
  rule(!has("expert_fc1") || !c.has("overlap-moe-expert-parallel-comm") ||
           c.word("moe-flex-dispatcher-backend") != "ncclep",
       "the overlap of experts with ncclep frees the input of expert_fc1", "leave expert_fc1 out");
  const std::vector<std::string> graphs = c.graph_modules();
  const bool has_whole_layers =
      graphs.empty() || std::any_of(graphs.begin(), graphs.end(), [](const auto& m) { return m == "moe"; });
  rule(c.graphs() != "local" || (of_experts == std::ssize(modules) && !has_whole_layers),
       "with local CUDA graphs only experts outside of them are offloaded", "--cuda-graph-impl transformer_engine");
  c.words().find_share("activation-offload-fraction");
  rule(!c.has("cpu-offloading-num-layers") || c.word("cpu-offloading-num-layers") == "0",
       "layers are offloaded already", "leave one of them out");
  rule(c.arguments().variable("NVTE_CPU_OFFLOAD_V1").value_or("1") == "1",
       "the script sets NVTE_CPU_OFFLOAD_V1 otherwise", "export NVTE_CPU_OFFLOAD_V1=1");
}

/// Pages have what experts keep, for as many rows as a rank may get.
void check_pages(MegatronRuleCheck& c) {
  const char* const pages = "moe-paged-stash";
  if (!c.has(pages)) return;
  const auto rule = [&](bool holds, const char* why, const char* help) {
    c.require(holds, "paged-stash", pages, why, help);
  };
  const std::vector<std::string> modules = c.words().words("offload-modules");
  rule(c.has("moe-expert-rank-capacity-factor"), "it needs a capacity of ranks",
       "--moe-expert-rank-capacity-factor 1.5, or leave it out");
  rule(std::none_of(modules.begin(), modules.end(), is_module_of_experts), "experts are offloaded by modules",
       "leave one of them out");
  rule(!c.has("cpu-offloading-num-layers") || c.word("cpu-offloading-num-layers") == "0", "layers are offloaded",
       "leave one of them out");
}

void check_graphs(MegatronRuleCheck& c) {
  const bool of_iteration = c.graphs() == "full_iteration";
  c.require(!of_iteration || c.has("no-check-for-nan-in-loss-and-grad"), "graph-iteration", "cuda-graph-impl",
            "the loss is checked for NaN", "--no-check-for-nan-in-loss-and-grad");
  c.require(!of_iteration || c.graph_modules().empty(), "graph-iteration", "cuda-graph-impl", "modules are named",
            "leave --cuda-graph-modules out");
  c.require(c.graphs().empty() || of_iteration || c.granularity() != "full", "graph-recompute", "cuda-graph-impl",
            "layers are recomputed as a whole",
            "--recompute-granularity selective, or --cuda-graph-impl full_iteration");
}

void check_precision(MegatronRuleCheck& c) {
  c.require(!c.has("fp4-format") || !c.has("fp8-format"), "formats", "fp4-format", "fp4 excludes fp8",
            "leave one of them out");
  c.require(!c.has("first-last-layers-bf16") || !c.is_delayed(), "format-of-ends", "first-last-layers-bf16",
            "delayed scaling has all layers in fp8", "--fp8-recipe tensorwise");
  const char* const weights = "fp8-param-gather";
  c.require(!c.has(weights) || c.has("use-distributed-optimizer") || c.has("use-torch-fsdp2") || c.has_fsdp(),
            "fp8-weights", weights, "it needs the distributed optimizer or FSDP", "--use-distributed-optimizer");
  c.require(!c.has(weights) || c.has("fp8-format"), "fp8-weights", weights, "products are not in fp8",
            "--fp8-format hybrid, or leave it out");
  c.require(!c.has("fp4-param-gather") || c.has("fp4-format"), "fp4-weights", "fp4-param-gather",
            "products are not in fp4", "--fp4-format e2m1, or leave it out");
  const char* const scores = "fp8-output-proj";
  c.require(!c.has(scores) || (c.has("fp8-format") && c.word("fp8-recipe") == "mxfp8"), "fp8-scores", scores,
            "it needs products in mxfp8", "--fp8-format e4m3 --fp8-recipe mxfp8, or leave it out");
  for (const auto& [recipe, factory] :
       {std::pair{"fp8-recipe", "fp8-quantizer-factory"}, {"fp4-recipe", "fp4-quantizer-factory"}})
    c.require(c.word(recipe) != "custom" || c.has(factory), "own-recipe", recipe,
              fmt::format("a recipe of your own needs --{}", factory), fmt::format("--{}", factory));
  c.require(!c.has("fp32-residual-connection") || c.has("fp16") || c.has("bf16"), "wide-sums",
            "fp32-residual-connection", "all numbers are in fp32", "--bf16, or leave it out");
  c.require(!c.has("fp16-lm-cross-entropy") || c.has("fp16"), "narrow-loss", "fp16-lm-cross-entropy",
            "numbers are not in fp16", "--fp16, or leave it out");
  c.require(!c.has("fp16") || !c.has("bf16"), "half-formats", "fp16", "fp16 excludes bf16", "leave one of them out");
}

void check_fsdp(MegatronRuleCheck& c) {
  const bool format = c.word("ckpt-format") == "fsdp_dtensor";
  c.require(!c.has_fsdp() || format, "fsdp-checkpoints", "use-megatron-fsdp", "it needs --ckpt-format fsdp_dtensor",
            "--ckpt-format fsdp_dtensor");
  c.require(c.has_fsdp() || !format, "fsdp-checkpoints", "ckpt-format", "fsdp_dtensor is for Megatron-FSDP",
            "--ckpt-format torch_dist");
  if (!c.has_fsdp()) return;
  c.require(c.arguments().variable("CUDA_DEVICE_MAX_CONNECTIONS").value_or("") != "1", "fsdp-connections",
            "use-megatron-fsdp", "the script sets CUDA_DEVICE_MAX_CONNECTIONS=1", "unset CUDA_DEVICE_MAX_CONNECTIONS");
  const std::string optimizer = c.word("optimizer");
  c.require(optimizer.empty() || optimizer == "adam" || optimizer == "sgd", "fsdp-optimizer", "optimizer",
            "Megatron-FSDP takes adam or sgd", "--optimizer adam");
}

/// Version 2 of Megatron-FSDP is new, and has less than version 1.
void check_second_fsdp(MegatronRuleCheck& c) {
  const char* const version = "megatron-fsdp-version";
  if (!c.has_fsdp() || c.word(version) != "2") return;
  const auto rule = [&](bool holds, const char* why, const char* help) {
    c.require(holds, "fsdp-version", version, why, help);
  };
  const TrainingSetup& s = c.setup();
  rule(s.tensor == 1 && s.ranks == 1 && s.context == 1, "it has neither tensor, pipeline nor context parallelism",
       "--megatron-fsdp-version 1");
  const std::string strategy = c.word("data-parallel-sharding-strategy");
  rule(strategy.empty() || strategy == "optim_grads_params", "it divides weights, gradients and states",
       "--data-parallel-sharding-strategy optim_grads_params");
  rule(!c.has("use-distributed-optimizer"), "it excludes the distributed optimizer", "leave one of them out");
  rule(c.has("no-gradient-accumulation-fusion"), "it excludes fused accumulation of gradients",
       "--no-gradient-accumulation-fusion");
  rule(!c.has("fp8-format") && !c.has("fp4-format"), "it excludes fp8 and fp4", "--megatron-fsdp-version 1");
  rule(c.graphs().empty(), "it excludes CUDA graphs", "--cuda-graph-impl none");
}

void check_torch_fsdp(MegatronRuleCheck& c) {
  const char* const fsdp = "use-torch-fsdp2";
  const std::string checkpoints = c.word("ckpt-format");
  c.require(checkpoints != "torch_dcp" || (c.has(fsdp) && c.setup().tensor == 1 && c.setup().ranks == 1),
            "torch-checkpoints", "ckpt-format", "torch_dcp is for FSDP2 without tensor and pipeline parallelism",
            "--ckpt-format torch_dist");
  if (!c.has(fsdp)) return;
  const auto rule = [&](bool holds, const char* why, const char* help) {
    c.require(holds, "torch-fsdp", fsdp, why, help);
  };
  rule(c.setup().ranks == 1, "it excludes pipeline parallelism", "--pipeline-model-parallel-size 1");
  rule(c.setup().expert == 1, "it excludes expert parallelism", "--expert-model-parallel-size 1");
  rule(!c.has("use-distributed-optimizer"), "it excludes the distributed optimizer", "leave one of them out");
  rule(c.has("no-gradient-accumulation-fusion"), "it excludes fused accumulation of gradients",
       "--no-gradient-accumulation-fusion");
  rule(c.has("untie-embeddings-and-output-weights"), "it excludes tied embeddings",
       "--untie-embeddings-and-output-weights");
  rule(!c.has("fp16"), "it excludes fp16", "--bf16");
  rule(checkpoints.empty() || checkpoints == "torch_dist" || checkpoints == "torch_dcp",
       "it writes no such checkpoints", "--ckpt-format torch_dist");
  rule(c.arguments().variable("CUDA_DEVICE_MAX_CONNECTIONS").value_or("") != "1",
       "the script sets CUDA_DEVICE_MAX_CONNECTIONS=1", "unset CUDA_DEVICE_MAX_CONNECTIONS");
}

}  // namespace

void check_memory_rules(MegatronRuleCheck& c) {
  for (const auto rules : {check_recomputation, check_offload, check_offloaded_modules, check_pages, check_graphs,
                           check_precision, check_fsdp, check_second_fsdp, check_torch_fsdp})
    rules(c);
}

}  // namespace stagecraft
