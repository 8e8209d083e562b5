// Which rules about experts, their dispatcher and their router the arguments of Megatron-LM 0.20 break.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_rules.hpp"

namespace stagecraft {
namespace {

void check_experts(MegatronRuleCheck& c) {
  if (!c.has_experts()) {
    c.require(!c.has("moe-ffn-hidden-size") || c.has("moe-layer-freq"), "no-experts", "moe-ffn-hidden-size",
              "the model has no experts", "--num-experts NUMBER, or leave it out");
    c.require(c.words().find_number("expert-model-parallel-size").value_or(1) == 1, "no-experts",
              "expert-model-parallel-size", "the model has no experts", "leave it out");
    return;
  }
  const int experts = c.words().find_number("num-experts").value_or(1);
  const std::int64_t each = std::int64_t{c.setup().expert} * c.setup().expert_tensor;
  c.require(experts % c.setup().expert == 0, "experts", "expert-model-parallel-size",
            fmt::format("expert {} does not divide {}", c.setup().expert, pluralize(experts, "expert")),
            "a divisor of the experts");
  c.require(c.setup().tensor == 1 || c.setup().sequence_parallel, "experts-sequence", "tensor-model-parallel-size",
            "experts in a tensor group need sequence parallelism", "--sequence-parallel");
  c.require(c.setup().expert_tensor == 1 || c.has("disable-bias-linear"), "expert-bias", "expert-tensor-parallel-size",
            "experts with biases are not divided by expert tensor parallelism",
            "--expert-tensor-parallel-size 1, or --disable-bias-linear");
  if (c.replicas() > 0) {
    const std::int64_t devices = c.replicas() * c.setup().tensor * c.setup().context;  // One pipeline rank has these.
    c.require(
        devices % each == 0, "expert-devices", "expert-model-parallel-size",
        fmt::format("expert tensor {} x expert {} x {} does not divide {}", c.setup().expert_tensor, c.setup().expert,
                    pluralize(c.setup().ranks, "pipeline rank"), pluralize(devices * c.setup().ranks, "GPU")),
        c.setup().expert_tensor > 1 ? "--expert-tensor-parallel-size 1, or a smaller expert degree"
                                    : "a smaller expert degree");
    c.require(c.setup().order.empty() || c.setup().ranks == 1 || devices % each != 0 || devices / each == c.replicas(),
              "expert-order", "use-tp-pp-dp-mapping",
              fmt::format("experts have {}, and the rest {}", pluralize(devices / each, "data-parallel replica"),
                          c.replicas()),
              "leave it out");
  }
  const char* const shared = "moe-shared-expert-overlap";
  c.require(!c.has(shared) || c.dispatcher() != "allgather", "shared-overlap", shared,
            "it needs the dispatcher alltoall or flex", "--moe-token-dispatcher-type alltoall");
  c.require(!c.has(shared) || !c.recomputes("shared_experts"), "shared-recomputed", shared,
            "shared experts are recomputed", "leave one of them out");
}

/// The library of exchanges counts with the dispatcher flex alone, and is DeepEP where none is named.
void check_dispatcher(MegatronRuleCheck& c) {
  const std::string library = c.word("moe-flex-dispatcher-backend");
  const bool has_deepep = c.dispatcher() == "flex" && (library.empty() || library == "deepep");
  c.require(!c.has("moe-enable-deepep") || c.dispatcher() == "flex", "deepep", "moe-enable-deepep",
            "DeepEP needs the dispatcher flex",
            "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep");
  c.require(!c.has("moe-enable-deepep") || library != "hybridep", "deepep", "moe-enable-deepep",
            "--moe-flex-dispatcher-backend names HybridEP", "leave it out");
  c.require(library != "ncclep" || c.dispatcher() == "flex", "ncclep", "moe-flex-dispatcher-backend",
            "ncclep needs the dispatcher flex", "--moe-token-dispatcher-type flex");
  const char* const padded = "moe-pad-expert-input-to-capacity";
  c.require(!c.has(padded) || c.has("moe-expert-capacity-factor"), "capacity", padded, "no capacity factor is given",
            "--moe-expert-capacity-factor 1.0");
  const std::string balancing = c.word("moe-router-load-balancing-type");
  c.require(!c.has("moe-expert-capacity-factor") || (balancing != "sinkhorn" && balancing != "quantile_balancing"),
            "capacity", "moe-expert-capacity-factor", fmt::format("no capacity goes with {} balancing", balancing),
            "--moe-router-load-balancing-type aux_loss");
  const char* const of_rank = "moe-expert-rank-capacity-factor";
  c.require(!c.has(of_rank) || library == "hybridep" || library == "ncclep", "capacity", of_rank,
            "only HybridEP and NCCL have a capacity of ranks", "--moe-flex-dispatcher-backend hybridep");
  c.require(!c.has(padded) || !has_deepep, "capacity", padded, "DeepEP does not pad",
            "--moe-flex-dispatcher-backend hybridep, or leave it out");
  for (const char* routes : {"moe-router-padding-for-fp8", "moe-router-padding-for-quantization"}) {
    c.require(!c.has(routes) || c.has("fp8-format") || c.has("fp4-format"), "router-padding", routes,
              "products are neither in fp8 nor in fp4", "leave it out");
    c.require(!c.has(routes) || c.dispatcher() != "allgather", "router-padding", routes,
              "the dispatcher allgather does not pad", "--moe-token-dispatcher-type alltoall");
  }
}

void check_expert_overlap(MegatronRuleCheck& c) {
  const char* const overlap = "overlap-moe-expert-parallel-comm";
  c.require(!c.has("delay-wgrad-compute") || c.has(overlap), "weight-gradients", "delay-wgrad-compute",
            fmt::format("it needs --{}", overlap), fmt::format("--{}, or leave it out", overlap));
  if (!c.has(overlap)) return;
  const auto rule = [&](bool holds, const char* why, const char* help) {
    c.require(holds, "expert-overlap", overlap, why, help);
  };
  rule(c.setup().expert > 1, "it needs experts on several devices", "--expert-model-parallel-size 2 or more");
  rule(c.dispatcher() != "allgather", "it needs the dispatcher alltoall or flex",
       "--moe-token-dispatcher-type alltoall");
  rule(c.setup().ranks == 1 || c.setup().chunks > 1, "pipeline ranks need virtual stages",
       "--num-virtual-stages-per-pipeline-rank");
  rule(c.has("bf16") || c.has("fp16"), "it needs bf16 or fp16", "--bf16");
  rule(c.granularity() != "full" && !c.recomputes("moe"), "experts are recomputed",
       "--recompute-granularity selective without moe");
  rule(!c.has("moe-shared-expert-overlap"), "shared experts overlap already", "leave one of them out");
  rule(c.shape().next_tokens <= 1, "it takes one next-token module at most", "--mtp-num-layers 1");
  const std::vector<std::string> graphs = c.graph_modules();
  rule(std::none_of(graphs.begin(), graphs.end(), [](const auto& m) { return m == "moe" || m == "mlp"; }),
       "CUDA graphs have the layer of experts", "--cuda-graph-modules without moe and mlp");
}

void check_router(MegatronRuleCheck& c) {
  const std::optional<int> groups = c.words().find_number("moe-router-num-groups"),
                           active = c.words().find_number("moe-router-group-topk");
  const int experts = c.words().find_number("num-experts").value_or(1);
  c.require(!active || (groups && experts % *groups == 0 && *active <= *groups), "router-groups",
            "moe-router-group-topk", "it needs as many --moe-router-num-groups, which divide the experts",
            "leave it out");
  const std::string score = c.word("moe-router-score-function");
  c.require(!c.has("moe-router-enable-expert-bias") || score == "sigmoid" || score == "sqrtsoftplus", "router-bias",
            "moe-router-enable-expert-bias", "it needs the score function sigmoid or sqrtsoftplus",
            "--moe-router-score-function sigmoid");
  c.require(!c.has_experts() || c.words().find_number("moe-router-topk").value_or(2) > 1 ||
                (!score.empty() && score != "softmax") || c.has("moe-router-pre-softmax") ||
                c.word("moe-router-load-balancing-type") == "sinkhorn",
            "router-top", "moe-router-topk", "one expert a token needs --moe-router-pre-softmax",
            "--moe-router-pre-softmax");
}

}  // namespace

void check_expert_rules(MegatronRuleCheck& c) {
  for (const auto rules : {check_experts, check_dispatcher, check_expert_overlap, check_router}) rules(c);
}

}  // namespace stagecraft
