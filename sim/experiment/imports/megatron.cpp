// Arguments of Megatron-LM (megatron/training/arguments.py, 0.12 to 0.14, and older names of the same options): export
// megatron writes what this reads.

#include <fmt/core.h>

#include "sim/experiment/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

void read_groups(MegatronArguments& a, TrainingSetup& s) {
  s.tensor = a.number(s, "tensor-model-parallel-size", "plan.group.tensor", 1);
  s.sequence_parallel = a.flag(s, "sequence-parallel", "plan.group.sequence", "true");
  s.context = a.number(s, "context-parallel-size", "plan.group.context", 1);
  const std::string exchange = a.word("cp-comm-type");
  if (exchange == "p2p" || exchange == "all_gather" || exchange == "a2a")
    s.context_type = exchange, note_match(s, "cp-comm-type", "plan.group.context_type", exchange);
  else if (!exchange.empty())
    s.unmodeled.push_back("--cp-comm-type " + exchange);
  if (a.flag(s, "use-tp-pp-dp-mapping", "plan.group.order", "tp-cp-ep-pp-dp")) s.order = "tp-cp-ep-pp-dp";
}

void read_divided_state(MegatronArguments& a, TrainingSetup& s) {
  if (a.flag(s, "use-distributed-optimizer", "plan.shard", "optimizer")) s.shard = "optimizer";
  if (const std::string stage = a.word("zero-stage"); !stage.empty()) {  // Megatron-DeepSpeed.
    s.shard = stage == "1" ? "optimizer" : stage == "2" ? "gradients" : stage == "3" ? "weights" : "none";
    note_match(s, "zero-stage", "plan.shard", s.shard);
    if (s.shard == "none" && a.has("bf16"))
      s.assumed.emplace_back("DeepSpeed's bf16 optimizer divides its state itself; plan.shard: optimizer says so");
  }
  const std::string strategy = a.word("data-parallel-sharding-strategy");
  const bool fsdp = a.take("use-megatron-fsdp"), custom_fsdp = a.take("use-custom-fsdp");
  if (fsdp || custom_fsdp) {
    s.shard = strategy == "optim_grads" ? "gradients" : strategy == "optim" ? "optimizer" : "weights";
    if (strategy == "no_shard") s.shard = "none";
    note_match(s, "use-megatron-fsdp", "plan.shard", s.shard);
  }
  if (const int copies = a.find_number("num-distributed-optimizer-instances").value_or(1); copies > 1)
    s.unmodeled.push_back(fmt::format("--num-distributed-optimizer-instances {}", copies));
}

/// Until 2022 --checkpoint-activations was the recomputation of whole layers, and --recompute-method alone for some
/// months after it.
void read_recomputation(MegatronArguments& a, TrainingSetup& s, bool flash_attention) {
  std::string granularity = a.word("recompute-granularity");
  const std::string method = a.word("recompute-method");
  const int block = a.find_number("recompute-num-layers").value_or(1);
  const bool old = a.take("checkpoint-activations"), deepspeed = a.take("deepspeed-activation-checkpointing");
  if (granularity.empty() && (old || !method.empty())) granularity = "full";
  if (deepspeed && !old) s.unmodeled.emplace_back("--deepspeed-activation-checkpointing");
  if (a.take("recompute-activations") || granularity == "selective") s.recompute = "selective";
  if (granularity == "full") s.recompute = "layers";
  if (s.recompute == "selective" && flash_attention) {
    s.recompute.clear();
    s.assumed.emplace_back(
        "attention is fused, so selective recomputation frees nothing and is left out; --attention-backend unfused "
        "changes that");
  }
  if (!s.recompute.empty())
    note_match(s, old ? "checkpoint-activations" : "recompute-granularity", "plan.recompute", s.recompute);
  if (granularity == "full" && (block > 1 || method == "block"))
    s.unmodeled.push_back(fmt::format("--recompute-method {} --recompute-num-layers {}", method, block));
}

void read_precision(MegatronArguments& a, TrainingSetup& s) {
  const std::string format = a.word("fp8-format"), recipe = a.word("fp8-recipe");
  s.precision = "fp32";
  if (a.take("fp16")) s.precision = "fp16";
  if (a.take("bf16")) s.precision = "bf16";
  if (!format.empty()) s.precision = recipe == "mxfp8" ? "mxfp8" : "fp8";
  if (!recipe.empty() && recipe != "mxfp8" && recipe != "delayed") s.unmodeled.push_back("--fp8-recipe " + recipe);
  s.matched.push_back("number format -> run.precision: " + s.precision);
}

/// The launcher's processes of each node and nodes.
void read_devices(MegatronArguments& a, TrainingSetup& s, const SetupOptions& options) {
  const auto count = [&](const char* first, const char* second) {
    const std::string name = a.has(first) ? first : second;
    const std::string text = a.word(name);
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? a.find_number(name) : std::optional<int>();
  };
  const std::optional<int> each = count("nproc_per_node", "nproc-per-node"), nodes = count("nnodes", "nnodes");
  const std::int64_t group = std::int64_t{s.ranks} * s.tensor * s.context;
  if (options.devices > 0) return;
  if (each && nodes && std::int64_t{*each} * *nodes % group == 0) {
    s.replicas = static_cast<int>(std::int64_t{*each} * *nodes / group);
    s.matched.push_back(fmt::format("--nproc_per_node {} --nnodes {} -> replicas: {}", *each, *nodes, s.replicas));
  } else {
    s.assumed.emplace_back("the number of GPUs is not known, so there is one replica; --devices NUMBER changes that");
  }
}

}  // namespace

TrainingSetup read_megatron(const std::string& text, const std::string& file, const SetupOptions& options) {
  MegatronArguments arguments(text, file);
  TrainingSetup setup;
  setup.software = "megatron-core";
  const MegatronShape shape = read_megatron_model(arguments, setup, options);
  read_groups(arguments, setup);
  read_megatron_pipeline(arguments, setup, shape);
  read_divided_state(arguments, setup);
  read_recomputation(arguments, setup, shape.flash_attention);
  read_precision(arguments, setup);
  setup.micro_batch_size = arguments.number(setup, "micro-batch-size", "plan.micro_batch_size");
  setup.global_batch = arguments.number(setup, "global-batch-size", "run.global_batch");
  read_devices(arguments, setup, options);
  arguments.sort_others(setup);
  return setup;
}

}  // namespace stagecraft
