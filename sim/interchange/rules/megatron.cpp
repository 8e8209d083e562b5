// What Megatron-LM demands, 0.20 (d98e8a64, 2026-08-22) and the releases from 0.11 on unless a rule is newer:
// megatron/training/arguments.py, core/model_parallel_config.py, core/transformer/transformer_config.py,
// core/parallel_state.py and core/pipeline_parallel/schedules.py, restated; imports/megatron_rules.cpp,
// megatron_pipeline.cpp and megatron.cpp compare arguments with them.

#include "sim/interchange/rules/framework_rule.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kChecks = "when it checks its arguments", kConfigures = "when it configures the model",
                           kBuilds = "when it builds the model", kGroups = "when it makes its process groups",
                           kFirstStep = "at the first step";

constexpr FrameworkRule kMegatronRules[] = {
    // Devices and batch.
    {"devices", "W mod (T P C) = 0", "AssertionError", kChecks},
    {"batch", "global batch mod (micro-batch D) = 0", "AssertionError", kChecks},
    {"evaluation-batch", "global batch of evaluation mod (its micro-batch D) = 0", "AssertionError", kChecks},
    {"instances", "D C mod instances of the distributed optimizer = 0", "RuntimeError", kGroups},
    {"head-width", "hidden mod heads = 0, without the width of a head", "AssertionError", kChecks},
    {"heads", "heads mod T = 0", "ValueError", kConfigures},
    {"query-groups", "query groups are a multiple of T, or since 0.16 a divisor", "ValueError", kConfigures},
    {"latent-attention", "latent attention has no query groups", "AssertionError", kChecks, "0.16"},
    {"latent-rotation", "latent attention with fused rotation: rotation yarn", "ValueError", kConfigures},
    {"positions", "sequence <= positions", "AssertionError", kChecks},
    {"no-positions", "no position embedding: said by --position-embedding-type", "RuntimeError", kChecks},
    {"sections", "rotation mrope has sections", "AssertionError", kChecks},
    {"old-options", "neither --batch-size, --warmup nor --model-parallel-size", "AssertionError", kChecks},
    {"next-token-positions", "next-token modules: rotary positions, or none", "AssertionError", kChecks},
    {"context-sequence", "sequence mod 2C = 0, with C > 1", "AssertionError", kChecks},
    {"context-levels", "a2a+p2p has hierarchical context parallel sizes, whose product is C", "AssertionError",
     kChecks},
    {"context-list", "with C > 1, exchanges of context parallelism are one, or one for each layer", "AssertionError",
     kConfigures},
    {"connections", "before Blackwell, T > 1 or C > 1 has CUDA_DEVICE_MAX_CONNECTIONS=1", "AssertionError", kChecks},
    // Layers of stages.
    {"layers", "layers and counted ends mod P = 0, without a layout", "AssertionError", kChecks},
    {"layers-of-chunks", "layers of a rank mod V = 0", "AssertionError", kBuilds},
    {"layers-of-ends", "layers of the first, last and other ranks: mod V = 0, and the others equal", "ValueError",
     kConfigures},
    {"layers-of-virtual-stages", "layers of a rank mod layers of a virtual stage = 0", "AssertionError", kChecks},
    {"one-division", "one of layers of a virtual stage, virtual stages and layout", "AssertionError", kChecks},
    {"ends-with-virtual-stages", "layers of the first and last rank go with virtual stages of a rank alone",
     "AssertionError", kChecks},
    {"ends-and-counted", "layers of the first and last rank exclude counted ends", "ValueError", kConfigures},
    {"layout-alone", "a layout excludes layers of the first and last rank, and counted ends", "ValueError",
     kConfigures},
    {"layout-stages", "stages of a layout mod P = 0", "AssertionError", kChecks},
    {"layout-layers", "a layout has one E, first; one L, last; as many t and m as the model", "AssertionError",
     kConfigures},
    {"layout-next-tokens", "no t after m; all m in one stage, in the last chunk of its rank", "AssertionError",
     kConfigures},
    // Virtual stages.
    {"virtual-ranks", "V > 1: P > 1", "AssertionError", kChecks},
    {"virtual-messages", "V > 1 without overlap of messages: P > 2", "AssertionError", kChecks},
    {"group-size", "V > 1: N >= P", "ValueError", kFirstStep},
    {"few-micro-batches", "V > 1: M >= N", "ValueError", kFirstStep},
    {"remainder", "V > 1: M mod N = 0, or M mod N >= P", "RuntimeError", kFirstStep},
    // Overlap.
    {"tensor-overlap", "overlap of tensor collectives: T > 1 and sequence parallelism", "AssertionError", kChecks},
    {"gather-overlap", "overlap of the gather of weights: overlap of the sum of gradients", "AssertionError", kChecks},
    {"gather-optimizer", "overlap of the gather of weights: distributed optimizer or FSDP", "AssertionError", kChecks},
    {"gather-in-step", "gather in the optimizer step: overlap, distributed optimizer, V > 1, checkpoints torch",
     "AssertionError", kChecks},
    {"message-overlap", "overlap of messages in warm-up and flush: V > 1 with overlap of messages", "ValueError",
     kConfigures},
    {"embedding-gradients", "deferred gradients of the embedding: P > 1 and fused accumulation", "ValueError",
     kConfigures},
    {"dispatch-overlap", "overlap of the backward dispatch alone: neither overlap of experts nor delayed gradients",
     "AssertionError", kConfigures},
    {"loss", "a fused loss is not that of Transformer Engine", "AssertionError", kChecks},
    // Experts.
    {"no-experts", "E > 1, or a width of experts: the model has experts", "AssertionError", kChecks},
    {"experts", "experts mod E = 0", "AssertionError", kChecks},
    {"experts-sequence", "experts with T > 1 have sequence parallelism", "ValueError", kFirstStep},
    {"expert-bias", "experts with biases: U = 1", "AssertionError", kConfigures},
    {"expert-devices", "W mod (U E P) = 0", "RuntimeError", kGroups},
    {"expert-order", "order tp-cp-ep-pp-dp: D = W/(U E P), or P = 1", "AssertionError", kGroups},
    {"deepep", "DeepEP has the dispatcher flex, and no other library with it", "ValueError", kConfigures},
    {"ncclep", "the exchange of NCCL has the dispatcher flex", "ValueError", kConfigures},
    {"capacity",
     "padding to a capacity: a capacity factor, and not DeepEP; a capacity: neither sinkhorn nor quantiles; of a rank: "
     "HybridEP or NCCL",
     "ValueError", kConfigures},
    {"router-padding", "padding of routes: fp8 or fp4, and a dispatcher other than allgather", "ValueError",
     kConfigures},
    {"shared-overlap", "overlap of shared experts: dispatcher alltoall or flex", "ValueError", kConfigures},
    {"shared-recomputed", "overlap of shared experts: they are not recomputed", "ValueError", kConfigures},
    {"weight-gradients", "delayed weight gradients: overlap of experts", "AssertionError", kConfigures},
    {"expert-overlap",
     "overlap of experts: E > 1; alltoall or flex; V > 1 or P = 1; bf16 or fp16; neither full recomputation nor moe; "
     "no overlap of shared experts; at most one next-token module; no CUDA graphs of moe or mlp",
     "AssertionError", kConfigures},
    {"router-groups", "groups of experts: experts mod groups = 0, chosen groups <= groups", "ValueError", kConfigures},
    {"router-bias", "expert bias: score function sigmoid or sqrtsoftplus", "ValueError", kConfigures},
    {"router-top", "one expert a token with softmax: softmax before the choice", "ValueError", kConfigures},
    // Recomputation and precision.
    {"recompute-method", "full recomputation has a method", "ValueError", kConfigures},
    {"recompute-layers", "full recomputation has a number of layers", "ValueError", kConfigures},
    {"selective-method", "selective recomputation has no method", "AssertionError", kChecks},
    {"selective-layers", "selective recomputation has no number of layers", "ValueError", kConfigures},
    {"recompute-modules",
     "known modules; moe_act has grouped products, mla_up_proj latent attention; no recomputed layers of experts in "
     "recomputed layers",
     "ValueError", kConfigures},
    {"recompute-fp8", "delayed scaling recomputes neither layernorm nor moe_act", "ValueError", kConfigures},
    {"saved-activations", "divided saved activations: T > 1, full recomputation, no sequence parallelism",
     "AssertionError", kChecks},
    {"offload", "offloaded layers: fewer than L, P = 1, no recomputation, no CUDA graphs of layers", "ValueError",
     kConfigures},
    {"activation-offload",
     "offloaded activations: known modules; attn_proj with core_attn; no parts of recomputed experts, or of layers in "
     "local CUDA graphs; no expert_fc1 with the overlap of ncclep; no offloaded layers; NVTE_CPU_OFFLOAD_V1=1",
     "AssertionError", kConfigures},
    {"paged-stash", "pages of what experts keep: a capacity of ranks; neither modules of experts nor layers offloaded",
     "ValueError", kConfigures},
    {"optimizer-offload", "an offloaded optimizer: precision-aware; fp8 weights with delayed scaling alone",
     "AssertionError", kChecks},
    {"graph-iteration", "a CUDA graph of an iteration: no check for NaN, no modules", "AssertionError", kChecks},
    {"graph-recompute", "full recomputation with CUDA graphs: one graph of an iteration", "AssertionError",
     kConfigures},
    {"formats", "fp4 or fp8", "ValueError", kConfigures},
    {"format-of-ends", "first and last layers in bf16: fp8 without delayed scaling", "ValueError", kConfigures},
    {"fp8-weights", "weights in fp8: distributed optimizer or FSDP, and products in fp8", "AssertionError", kChecks},
    {"fp4-weights", "weights in fp4: products in fp4", "ValueError", kChecks},
    {"fp8-scores", "scores in fp8: products in mxfp8", "ValueError", kConfigures},
    {"own-recipe", "a recipe of one's own has a factory", "ValueError", kConfigures},
    {"wide-sums", "residual sums in fp32: fp16 or bf16", "AssertionError", kChecks},
    {"narrow-loss", "loss in fp16: fp16", "AssertionError", kChecks},
    {"half-formats", "fp16 or bf16", "AssertionError", kChecks},
    // FSDP.
    {"fsdp-checkpoints", "Megatron-FSDP has checkpoints fsdp_dtensor, and nothing else has", "AssertionError", kChecks,
     "0.14"},
    {"fsdp-connections", "Megatron-FSDP: CUDA_DEVICE_MAX_CONNECTIONS is not 1", "AssertionError", kChecks},
    {"fsdp-version",
     "Megatron-FSDP of version 2: T = P = C = 1; all is divided; no distributed optimizer, fused accumulation, fp8, "
     "fp4 "
     "or CUDA graphs",
     "ValueError", kBuilds},
    {"fsdp-optimizer", "Megatron-FSDP: adam or sgd", "AssertionError", kChecks},
    {"torch-fsdp",
     "FSDP2: P = E = 1; no distributed optimizer, fused accumulation, tied embeddings or fp16; checkpoints torch_dist "
     "or torch_dcp; CUDA_DEVICE_MAX_CONNECTIONS is not 1",
     "AssertionError", kChecks},
    {"torch-checkpoints", "checkpoints torch_dcp: FSDP2, T = P = 1", "AssertionError", kChecks},
};

}  // namespace

const FrameworkRules& megatron_rules() {
  static constexpr FrameworkRules rules{"megatron", "Megatron-LM 0.20", kMegatronRules};
  return rules;
}

}  // namespace stagecraft
