// What torchtitan demands: tag 0.2.2 (2026-02-20), and main of 2026-08-21 (b5bcd76), which is configured in Python; and
// the schedules of torch.distributed.pipelining (PyTorch 00722e64), restated; and which of these rules a run breaks.

#include "sim/interchange/rules/torchtitan.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kMakesMesh = "when it makes the device mesh",
                           kParallelizes = "when it parallelizes the model",
                           kBuildsSchedule = "when it builds the schedule",
                           kReadsConfiguration = "when it reads its configuration";

constexpr FrameworkRule kTorchtitanRules[] = {
    {"keys", "keys of the release: 0.2.2 has local_batch_size, main num_tokens_per_microbatch_per_dp_rank", "exit",
     kReadsConfiguration},
    {"mesh", "W = replicate x shard x C x T x P", "AssertionError", kMakesMesh},
    {"expert-devices", "shard x C x T mod E = 0", "AssertionError", kMakesMesh},
    {"experts", "experts mod E = 0", "AssertionError", kMakesMesh},
    {"expert-tensor", "U = T or 1", "AssertionError", kMakesMesh},
    {"heads", "heads mod T = 0", "ValueError", kParallelizes},
    {"key-value-heads", "key-value heads mod T = 0 (main)", "ValueError", kParallelizes},
    {"sequence", "sequence mod (T 2C) = 0, with T > 1 or C > 1; main: tokens mod T, and mod (T 2C) with C > 1",
     "AssertionError", kMakesMesh},
    {"context-attention", "C > 1: flex attention (main)", "NotImplementedError", kParallelizes},
    {"replicas-alone", "replicate > 1 with shard = C = 1: T = E = P = 1 (0.2.2)", "RuntimeError", kParallelizes},
    {"micro-batch", "local batch mod micro-batch = 0, with P > 1", "ValueError", kBuildsSchedule},
    {"accumulation", "global batch mod (local batch x replicate x shard) = 0", "AssertionError", kReadsConfiguration},
    {"stages-of-ranks", "stages mod P = 0", "ValueError", kBuildsSchedule},
    {"layers-of-stages", "stages <= L + 2; embedding and scores count as no more layers than a stage has", "ValueError",
     kBuildsSchedule},
    {"stages-of-schedule", "stages of a rank: 1F1B and GPipe 1; ZBVZeroBubble and DualPipeV 2; others 2 or more",
     "ValueError", kBuildsSchedule},
    {"few-micro-batches", "1F1B and GPipe: M >= stages; DualPipeV: M >= 2P", "ValueError", kBuildsSchedule},
    {"rounds", "interleaved schedules: M mod max(1, M div P) = 0", "ValueError", kBuildsSchedule},
    {"compiled-schedule", "InterleavedZeroBubble, ZBVZeroBubble and DualPipeV: the model is not compiled (0.2.2)",
     "RuntimeError", kBuildsSchedule},
    {"async-tensor", "asynchronous tensor parallelism: the model is compiled", "RuntimeError", kParallelizes},
    {"memory-budget", "recomputation by a memory budget: the model is compiled", "ValueError", kReadsConfiguration},
    {"expert-recompute", "DualPipeV with overlap of experts: no recomputation (0.2.2)", "NotImplementedError",
     kParallelizes},
    {"graphs",
     "P > 1, or E > 1 without HybridEP with a capacity factor or MinimalAsyncEP: CUDA graphs are disabled (main)",
     "ValueError", kReadsConfiguration},
};

constexpr TorchtitanFlavor kTorchtitanFlavors[] = {
    {"llama3", "8B", "llama-3-8b", 32, 4096, 32, 8, 0, "llama3_8b"},
    {"llama3", "70B", "llama-3-70b", 80, 8192, 64, 8, 0, "llama3_70b"},
    {"llama3", "405B", "llama-3-405b", 126, 16384, 128, 8, 0, "llama3_405b"},
    {"qwen3", "32B", "qwen3-32b", 64, 5120, 64, 8, 0, "qwen3_32b"},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48, 2048, 32, 4, 128, "qwen3_30b_a3b"},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94, 4096, 64, 4, 128, "qwen3_30b_a3b"},
    {"deepseek_v3", "671B", "deepseek-v3", 61, 7168, 128, 0, 256, "deepseek_v3_671b"}};

// torchtitan/config/job_config.py of the tags 0.1.0 to 0.2.2, with two keys of older releases.
using KeysOfSection = std::pair<std::string_view, std::string_view>;
constexpr KeysOfSection kKeysOfToml[] = {
    {"model", "name flavor converters print_after_conversion hf_assets_path tokenizer_path"},
    {"training",
     "local_batch_size global_batch_size seq_len max_norm steps enable_cpu_offload dtype mixed_precision_param "
     "mixed_precision_reduce compile gc_freq gc_debug seed deterministic debug_moe_force_load_balance dataset "
     "dataset_path dataloader batch_size warmup_steps"},
    {"parallelism",
     "data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward tensor_parallel_degree "
     "disable_loss_parallel enable_async_tensor_parallel pipeline_parallel_degree pipeline_parallel_split_points "
     "module_fqns_per_model_part pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers "
     "pipeline_parallel_layers_per_stage pipeline_parallel_schedule pipeline_parallel_schedule_csv "
     "pipeline_parallel_microbatch_size pipeline_parallel_expert_parallel_overlap context_parallel_degree "
     "context_parallel_load_balancer context_parallel_rotate_method enable_compiled_autograd expert_parallel_degree "
     "expert_tensor_parallel_degree expert_parallel_comm_backend"},
    {"activation_checkpoint",
     "mode selective_ac_option per_op_sac_force_recompute_mm_shapes_by_fqns early_stop memory_budget "
     "visualize_memory_budget_pareto preserve_rng_state determinism_check debug"},
    {"compile", "enable components backend"}};
// torchtitan/config/configs.py of main.
constexpr KeysOfSection kKeysOfMain[] = {
    {"training",
     "num_tokens_per_microbatch_per_dp_rank num_tokens_per_train_step max_context_length max_norm steps "
     "enable_cpu_offload disable_cuda_graphs dtype mixed_precision_param mixed_precision_reduce gc_freq gc_debug"},
    {"parallelism",
     "data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward enable_fsdp_symm_mem "
     "tensor_parallel_degree enable_sequence_parallel spmd_backend pipeline_parallel_degree "
     "module_fqns_per_model_part pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers "
     "pipeline_parallel_layers_per_stage pipeline_parallel_schedule pipeline_parallel_schedule_csv "
     "num_pp_microbatches context_parallel_degree context_parallel_load_balancer context_parallel_ptrr_mask_key "
     "expert_parallel_degree"},
    {"compile", "enable enable_async_tensor_parallel components backend"}};
constexpr std::string_view kOtherSectionsOfToml =
    "job profiling metrics optimizer lr_scheduler checkpoint comm debug experimental fault_tolerance float8 mx "
    "quantize "
    "memory_estimation validation";
constexpr std::string_view kOtherSectionsOfMain =
    "module config hf_assets_path dump_folder profiler metrics tokenizer dataloader optimizer lr_scheduler checkpoint "
    "comm validator debug override loss";

constexpr const char* kTorchtitanPlaces[] = {"group", "shard", "schedule", "batch"};

class TorchtitanRuleCheck {
 public:
  explicit TorchtitanRuleCheck(const TorchtitanRun& run) : r_(run) {}

  std::vector<Diagnostic> broken_rules() {
    check_mesh();
    check_model();
    check_batch();
    if (r_.ranks > 1) check_schedule();
    require(!r_.async_tensor || r_.compiles_model, "async-tensor", 0, "the model is not compiled",
            "compile.enable with the component model");
    require(r_.recomputation != "memory_budget" || r_.compiles_model, "memory-budget", 2, "the model is not compiled",
            "compile.enable with the component model");
    check_graphs();
    return std::move(broken_);
  }

 private:
  void require(bool holds, const char* rule, int place, std::string message, std::string help) {
    if (!holds) broken_.push_back({{}, kTorchtitanPlaces[place], std::move(message), std::move(help), rule});
  }

  void check_graphs() {
    const bool has_graphs = r_.main && !r_.disables_graphs;
    require(!has_graphs || r_.ranks == 1, "graphs", 2, "a pipeline runs with CUDA graphs",
            "--training.disable_cuda_graphs");
    require(!has_graphs || r_.ranks > 1 || r_.expert == 1 || r_.exchanges_without_host, "graphs", 0,
            "experts exchange rows by way of the host within CUDA graphs", "--training.disable_cuda_graphs");
  }

  void check_mesh() {
    const std::int64_t sharded = std::int64_t{r_.shard} * r_.context * r_.tensor;
    require(r_.main || r_.replicate == 1 || r_.shard * r_.context > 1 ||
                (r_.tensor == 1 && r_.expert == 1 && r_.ranks == 1),
            "replicas-alone", 1, "replicas without divided weights go with no other parallelism", "shard: weights");
    require(r_.expert == 1 || r_.expert_tensor <= 1 || r_.expert_tensor == r_.tensor, "expert-tensor", 0,
            fmt::format("expert_tensor is {}", r_.expert_tensor), fmt::format("expert_tensor: 1, or {}", r_.tensor));
    require(
        r_.expert == 1 || sharded % r_.expert == 0, "expert-devices", 0,
        fmt::format("expert {} does not divide the {} that divide weights", r_.expert, pluralize(sharded, "device")),
        fmt::format("expert: a divisor of {}", sharded));
    check_sequence();
    const std::int64_t devices = std::int64_t{r_.replicate} * r_.shard * r_.context * r_.tensor * r_.ranks;
    require(r_.devices == 0 || devices == r_.devices, "mesh", 0,
            fmt::format("the degrees have {}, and there are {}", pluralize(devices, "GPU"), r_.devices),
            "degrees whose product is the number of GPUs");
  }

  void check_sequence() {
    const std::int64_t rows = r_.divides_rows ? r_.tensor : 1;
    const std::int64_t parts = rows * (r_.main && r_.context == 1 ? 1 : 2 * std::int64_t{r_.context});
    if (r_.main)
      return require(r_.tokens % parts == 0, "sequence", 0,
                     fmt::format("{} tokens of a micro-batch are no multiple of {}", r_.tokens, parts),
                     fmt::format("a multiple of {}", parts));
    require(r_.sequence % parts == 0 || r_.tensor * r_.context == 1, "sequence", 0,
            fmt::format("a sequence of {} is no multiple of tensor x 2 context = {}", r_.sequence, parts),
            fmt::format("a sequence that is a multiple of {}", parts));
  }

  void check_model() {
    require(!r_.main || r_.context == 1 || r_.attention.empty() || r_.attention.starts_with("flex"),
            "context-attention", 0, fmt::format("the attention '{}' has no context parallelism", r_.attention),
            "attn_backend=\"flex\"");
    require(r_.experts == 0 || r_.experts % r_.expert == 0, "experts", 0,
            fmt::format("expert {} does not divide {}", r_.expert, pluralize(r_.experts, "expert")),
            "a divisor of the experts");
    require(r_.heads % r_.tensor == 0, "heads", 0,
            fmt::format("tensor {} does not divide {}", r_.tensor, pluralize(r_.heads, "head")),
            "a divisor of the heads");
    require(!r_.main || r_.key_value_heads % r_.tensor == 0, "key-value-heads", 0,
            fmt::format("tensor {} does not divide {}", r_.tensor, pluralize(r_.key_value_heads, "key-value head")),
            "a divisor of the key-value heads");
  }

  void check_batch() {
    require(r_.ranks == 1 || r_.micro_batch == 0 || r_.local_batch % r_.micro_batch == 0, "micro-batch", 3,
            fmt::format("a local batch of {} is no multiple of the micro-batch {}", r_.local_batch, r_.micro_batch),
            "a multiple of the micro-batch");
    const std::int64_t pass = r_.local_batch * r_.replicate * r_.shard;
    require(pass == 0 || r_.global_batch % pass == 0, "accumulation", 3,
            fmt::format("{} are no multiple of the {} of one pass", pluralize(r_.global_batch, "sample"), pass),
            fmt::format("run.global_batch: a multiple of {}", pass));
  }

  void check_schedule() {
    const bool single = r_.schedule == "1F1B" || r_.schedule == "GPipe";
    const bool both_ways = r_.schedule == "ZBVZeroBubble" || r_.schedule == "DualPipeV";
    const bool in_rounds = r_.schedule == "Interleaved1F1B" || r_.schedule == "InterleavedZeroBubble";
    const bool has_limit = single || both_ways || in_rounds || r_.schedule == "LoopedBFS";
    require(r_.stages % r_.ranks == 0, "stages-of-ranks", 2,
            fmt::format("{} on {}", pluralize(r_.stages, "stage"), pluralize(r_.ranks, "rank")),
            "as many stages on each rank");
    const std::int64_t each = r_.stages / r_.ranks, units = std::int64_t{r_.layers} + r_.first_less + r_.last_less;
    require(
        r_.layers == 0 || (r_.stages <= units && std::max(r_.first_less, r_.last_less) <= units / r_.stages),
        "layers-of-stages", 2,
        fmt::format("{} cannot be divided so into {}", pluralize(r_.layers, "layer"), pluralize(r_.stages, "stage")),
        "fewer stages");
    require(r_.main || r_.schedule != "DualPipeV" || r_.expert == 1 || !r_.overlaps_experts ||
                r_.recomputation.empty() || r_.recomputation == "none",
            "expert-recompute", 2, "experts that overlap are not recomputed",
            "activation_checkpoint.mode none, or pipeline_parallel_expert_parallel_overlap false");
    require(!has_limit || (single      ? each == 1
                           : both_ways ? each == 2
                                       : each >= 2),
            "stages-of-schedule", 2, fmt::format("{} on each rank with {}", pluralize(each, "stage"), r_.schedule),
            single      ? "1 stage on each rank"
            : both_ways ? "2 stages on each rank"
                        : "at least 2 stages on each rank");
    const std::int64_t count = r_.micro_batches;
    if (count == 0) return;
    require(!single || count >= r_.stages, "few-micro-batches", 2,
            fmt::format("{} on {}", pluralize(count, "micro-batch", "es"), pluralize(r_.stages, "stage")),
            fmt::format("run.micro_batches: {}", r_.stages));
    require(r_.schedule != "DualPipeV" || count >= 2 * r_.ranks, "few-micro-batches", 2,
            fmt::format("{} on {}", pluralize(count, "micro-batch", "es"), pluralize(r_.ranks, "rank")),
            fmt::format("run.micro_batches: {}", 2 * r_.ranks));
    const std::int64_t rounds = std::max<std::int64_t>(1, count / r_.ranks);
    require(
        !in_rounds || count % rounds == 0, "rounds", 2,
        fmt::format("{} cannot be divided into {}", pluralize(count, "micro-batch", "es"), pluralize(rounds, "round")),
        fmt::format("run.micro_batches: {}", (count / r_.ranks + 1) * r_.ranks));
    require(r_.main || !r_.compiles_model || !(both_ways || r_.schedule == "InterleavedZeroBubble"),
            "compiled-schedule", 2, fmt::format("{} does not run a compiled model", r_.schedule),
            "compile without the component model, or another schedule");
  }

  const TorchtitanRun& r_;
  std::vector<Diagnostic> broken_;
};

}  // namespace

const FrameworkRules& torchtitan_rules() {
  static constexpr FrameworkRules rules{"torchtitan", "torchtitan", kTorchtitanRules};
  return rules;
}

std::optional<std::string> help_for_unknown_key(const std::string& key, bool main) {
  const std::span<const KeysOfSection> sections = main ? std::span<const KeysOfSection>(kKeysOfMain) : kKeysOfToml;
  std::vector<std::string> keys;
  bool is_known = false;
  for (const auto& [section, names] : sections)
    for (const std::string& name : split(names, ' ')) keys.push_back(fmt::format("{}.{}", section, name));
  for (const std::string& section : split(main ? kOtherSectionsOfMain : kOtherSectionsOfToml, ' ')) {
    is_known = is_known || key == section || key.starts_with(section + ".");
    keys.push_back(section);
  }
  if (is_known || std::find(keys.begin(), keys.end(), key) != keys.end()) return {};
  return suggest(key, keys);
}

std::span<const TorchtitanFlavor> torchtitan_flavors() { return kTorchtitanFlavors; }

std::vector<int> torchtitan_layers(int layers, int stages, int of_embedding, int of_scores) {
  const int units = layers + of_embedding + of_scores;
  if (stages < 1 || stages > units) return {};
  std::vector<int> counts(stages, units / stages);
  for (int s = 0; s < units % stages; ++s) ++counts[s];
  counts.front() -= of_embedding, counts.back() -= of_scores;
  if (counts.front() < 0 || counts.back() < 0) return {};
  return counts;
}

std::vector<Diagnostic> broken_torchtitan_rules(const TorchtitanRun& run) {
  return TorchtitanRuleCheck(run).broken_rules();
}

}  // namespace stagecraft
