// Arguments of Megatron-LM (megatron/training/arguments.py, 0.12 to 0.14, and older names of the same options): export
// megatron writes what this reads.

#include <limits>
#include <set>

#include <fmt/core.h>

#include "sim/cost/software.hpp"
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
  const int copies = a.find_number("num-distributed-optimizer-instances").value_or(1);
  if (copies > 1 && !s.shard.empty() && s.shard != "none") {
    s.shard_copies = copies;
    s.matched.push_back(fmt::format("--num-distributed-optimizer-instances {} -> plan.shard.within", copies));
  }
}

/// Megatron-LM sums gradients in buckets only with --overlap-grad-reduce; the size of one counts parameters. What is
/// summed after each backward stays whole here.
void read_gradient_buckets(MegatronArguments& a, TrainingSetup& s) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const std::optional<int> parameters = a.find_number("ddp-bucket-size", kMost);
  if (!a.take("overlap-grad-reduce")) {
    if (parameters) s.without_use.push_back(a.written("ddp-bucket-size"));
    return;
  }
  const SoftwareStack& stack = software_stack(s.software);
  if (s.shard == "gradients" || s.shard == "weights" || (!parameters && !stack.buckets.cuts())) {
    s.unmodeled.emplace_back("--overlap-grad-reduce");
    if (parameters) s.unmodeled.push_back(a.written("ddp-bucket-size"));
    return;
  }
  s.gradient_buckets = parameters ? fmt::format("{:.0f} B", *parameters * stack.gradient_bytes) : "software";
  note_match(s, "overlap-grad-reduce", "run.gradient_buckets", s.gradient_buckets);
  if (parameters && s.ranks > 1)
    s.assumed.emplace_back(
        "--ddp-bucket-size is of the first pipeline rank alone in Megatron-LM, and run.gradient_buckets of all stages");
}

/// Selective recomputation of all modules but the inside of attention, which Megatron-LM takes where none is named.
/// Whether that is named too.
bool read_recomputed_modules(MegatronArguments& a, TrainingSetup& s) {
  std::set<std::string> modules;
  for (std::string& module : a.words("recompute-modules")) modules.insert(std::move(module));
  if (modules.empty()) return true;
  const bool attention = modules.erase("core_attn") > 0;
  std::string missing;
  bool outputs = false;
  for (const auto& [module, is_in_model] : {std::pair{"layernorm", true},
                                            {"moe_act", a.has("num-experts")},
                                            {"mla_up_proj", a.has("multi-latent-attention")}}) {
    const bool named = modules.erase(module) > 0;
    outputs = outputs || named;
    if (!named && is_in_model) missing += (missing.empty() ? "" : " ") + std::string(module);
  }
  std::string others;
  for (const std::string& module : modules) others += " " + module;
  if (!others.empty()) s.unmodeled.push_back("--recompute-modules" + others);
  if (!outputs) return attention;
  s.recompute = "outputs";
  note_match(s, "recompute-modules", "plan.recompute", s.recompute);
  if (!missing.empty())
    s.assumed.push_back("plan.recompute: outputs also computes again what is not named: " + missing);
  return attention;
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
  const bool selective = a.take("recompute-activations") || granularity == "selective";
  if (selective && read_recomputed_modules(a, s) && s.recompute.empty()) s.recompute = "selective";
  if (!selective && a.has("recompute-modules")) {
    a.take("recompute-modules");
    s.without_use.push_back(a.written("recompute-modules"));
  }
  if (granularity == "full") s.recompute = "layers";
  if (s.recompute == "selective" && flash_attention) {
    s.recompute.clear();
    s.assumed.emplace_back(
        "attention is fused, so selective recomputation frees nothing and is left out; --attention-backend unfused "
        "changes that");
  }
  if (!s.recompute.empty() && s.recompute != "outputs")
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

/// Options that Megatron-LM had only for some years say which stack it is.
void read_software(MegatronArguments& a, TrainingSetup& s) {
  s.software = "megatron-core";
  const bool old = a.take("DDP-impl"), deepspeed = a.take("deepspeed");
  if (old) s.software = "megatron-2021", note_match(s, "DDP-impl", "software", s.software);
  if (deepspeed) s.software = "megatron-deepspeed", note_match(s, "deepspeed", "software", s.software);
  // That stack has the loss in one kernel.
  if (!old && !deepspeed) a.flag(s, "cross-entropy-loss-fusion", "software", s.software);
}

/// A rate that is not given is 0.1 in Megatron-LM. The stack says whether dropout costs time; the mask of attention
/// takes memory where attention is not fused.
void read_dropout(MegatronArguments& a, TrainingSetup& s, bool flash_attention) {
  const bool in_stack = software_stack(s.software).dropout;
  std::string absent;
  for (const std::string name : {"attention-dropout", "hidden-dropout"}) {
    const bool given = a.has(name);
    const std::string rate = a.word(name);
    const bool none = given && !rate.empty() && rate.find_first_not_of("0.") == std::string::npos;
    if (none != in_stack) {
      if (given) note_match(s, name, "software", s.software);
    } else if (given) {
      s.unmodeled.push_back(a.written(name));
    } else {
      absent += (absent.empty() ? "--" : " and --") + name;
    }
    if (name == "attention-dropout" && !none && in_stack && !flash_attention)
      s.model.emplace_back("attention_dropout", "true");
  }
  if (!absent.empty()) s.assumed.push_back("without " + absent + " Megatron-LM drops 10 %, which is not modeled");
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
  read_software(arguments, setup);
  const MegatronShape shape = read_megatron_model(arguments, setup, options);
  read_groups(arguments, setup);
  read_megatron_pipeline(arguments, setup, shape);
  read_divided_state(arguments, setup);
  read_gradient_buckets(arguments, setup);
  read_recomputation(arguments, setup, shape.flash_attention);
  read_precision(arguments, setup);
  read_dropout(arguments, setup, shape.flash_attention);
  setup.micro_batch_size = arguments.number(setup, "micro-batch-size", "plan.micro_batch_size");
  setup.global_batch = arguments.number(setup, "global-batch-size", "run.global_batch");
  read_devices(arguments, setup, options);
  arguments.sort_others(setup);
  return setup;
}

}  // namespace stagecraft
