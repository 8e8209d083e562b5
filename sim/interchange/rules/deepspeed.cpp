// What DeepSpeed 0.19.6 demands (edaa722, 2026-08-22): runtime/config.py, runtime/pipe/engine.py and module.py,
// runtime/zero/mics_utils.py, restated; and which of these rules a run breaks.

#include "sim/interchange/rules/deepspeed.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr FrameworkRule kDeepspeedRules[] = {
    {"batch", "batch = micro-batch x accumulation x replicas", "AssertionError", "when it reads its configuration"},
    {"offload-ratio", "a part of the optimizer on hosts: ZeRO-3", "AssertionError", "when it reads its configuration"},
    {"gradient-sum", "sums of gradients in place of means: no ZeRO-3", "ValueError", "when it reads its configuration"},
    {"expert-zero", "AutoEP with ZeRO-3: no tensor or sequence groups, no offload, MiCS or hpZ", "AssertionError",
     "when it reads its configuration"},
    {"expert-devices", "AutoEP: W mod (stages E U) = 0", "ValueError", "when it divides experts"},
    {"expert-tensor", "AutoEP: U = 1", "ValueError", "when it divides experts"},
    {"expert-groups", "AutoEP with AutoTP: E > 1, and no Ulysses", "ValueError", "when it divides experts"},
    {"sequence-groups", "Ulysses: W mod C = 0", "RuntimeError", "when it makes the groups of GPUs"},
    {"mics-groups", "MiCS: W mod its shard size = 0", "AssertionError", "when it divides weights"},
    {"formats", "fp16 or bf16", "AssertionError", "when it reads its configuration"},
    {"stages", "W mod stages = 0", "RuntimeError", "when it makes the pipeline"},
    {"pipeline-zero", "a pipeline: ZeRO 0 or 1", "AssertionError", "when it makes the pipeline"},
    {"pipeline-overlap", "a pipeline: overlap_comm is off", "warning", "when it makes the pipeline"},
};

}  // namespace

const FrameworkRules& deepspeed_rules() {
  static constexpr FrameworkRules rules{"deepspeed", "DeepSpeed 0.19.6", kDeepspeedRules};
  return rules;
}

std::vector<Diagnostic> broken_deepspeed_rules(const DeepspeedRun& r) {
  std::vector<Diagnostic> broken;
  const auto require = [&](bool holds, const char* rule, const char* place, std::string message, std::string help) {
    if (!holds) broken.push_back({{}, place, std::move(message), std::move(help), rule});
  };
  // What is not given is derived, rounded down.
  const std::int64_t for_each = r.batch / std::max<std::int64_t>(1, r.replicas);
  const std::int64_t accumulation = r.accumulation > 0  ? r.accumulation
                                    : r.micro_batch > 0 ? std::max<std::int64_t>(1, for_each / r.micro_batch)
                                                        : 1;
  const std::int64_t micro_batch =
      r.micro_batch > 0 ? r.micro_batch : std::max<std::int64_t>(1, for_each / accumulation);
  const std::int64_t product = micro_batch * accumulation * r.replicas;
  require(product == 0 || r.batch == 0 || r.batch == product, "batch", "batch",
          fmt::format("{} are not micro-batch {} x accumulation {} x {}", pluralize(r.batch, "sample"), micro_batch,
                      accumulation, pluralize(r.replicas, "replica")),
          fmt::format("train_batch_size: {}", product));
  require(!r.offloads_a_part || r.zero == 3, "offload-ratio", "shard", "a part of the optimizer is offloaded",
          "zero_optimization.stage: 3, or ratio: 1");
  require(!r.adds_gradients || r.zero < 3, "gradient-sum", "shard", "gradients are added, which ZeRO-3 does not do",
          "gradient_allreduce_op: mean");
  require(!r.divides_experts || r.zero < 3 || !r.divides_otherwise, "expert-zero", "shard",
          "experts are divided automatically, and ZeRO-3 goes with nothing else then", "zero_optimization.stage: 2");
  const std::int64_t devices = r.devices > 0 ? r.devices : r.replicas * r.stages * r.tensor * r.context;
  const std::int64_t each = std::int64_t{r.stages} * r.expert * r.expert_tensor;
  require(!r.divides_experts || devices % each == 0, "expert-devices", "group",
          fmt::format("{} x expert {} x expert tensor {} does not divide {}", pluralize(r.stages, "stage"), r.expert,
                      r.expert_tensor, pluralize(devices, "GPU")),
          "expert_parallel.autoep_size: a divisor of the GPUs");
  require(!r.divides_experts || r.expert_tensor == 1, "expert-tensor", "group", "no expert is divided",
          "expert_parallel.expert_tensor_parallel_size: 1");
  require(!r.divides_experts || r.tensor == 1 || (r.expert > 1 && r.context == 1), "expert-groups", "group",
          r.expert == 1 ? "AutoTP divides a model whose experts are whole" : "AutoTP excludes Ulysses then",
          r.expert == 1 ? "expert_parallel.autoep_size: 2 or more" : "leave sequence_parallel_size out");
  require(devices % r.context == 0, "sequence-groups", "group",
          fmt::format("sequence groups of {} do not divide {}", r.context, pluralize(devices, "GPU")),
          "sequence_parallel_size: a divisor of the GPUs");
  require(r.mics == 0 || devices % r.mics == 0, "mics-groups", "shard",
          fmt::format("groups of {} do not divide {}", r.mics, pluralize(devices, "GPU")),
          "zero_optimization.mics_shard_size: a divisor of the GPUs");
  require(!r.fp16 || !r.bf16, "formats", "precision", "both number formats are enabled", "disable one of them");
  require(r.devices % r.stages == 0, "stages", "stages",
          fmt::format("{} do not divide {}", pluralize(r.stages, "stage"), pluralize(r.devices, "GPU")),
          "a divisor of the GPUs");
  require(r.stages == 1 || r.zero <= 1, "pipeline-zero", "shard",
          fmt::format("DeepSpeed's pipeline takes no ZeRO-{}", r.zero), "shard: optimizer, or one stage");
  require(r.stages == 1 || !r.overlaps_sums, "pipeline-overlap", "shard", "a pipeline switches overlap_comm off",
          "leave it out");
  return broken;
}

}  // namespace stagecraft
