// Reads arguments of Megatron-LM (megatron/training/arguments.py, 0.20, and older names of the same options) as a
// TrainingSetup, for `import megatron`, and calls the other megatron_*.cpp; export megatron writes what this reads.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/config/units.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

void read_groups(MegatronArguments& a, TrainingSetup& s) {
  s.tensor = a.number(s, "tensor-model-parallel-size", "plan.group.tensor", 1);
  s.sequence_parallel = a.take("sequence-parallel");
  if (s.sequence_parallel && s.tensor > 1) note_match(s, "sequence-parallel", "plan.group.sequence", "true");
  if (s.sequence_parallel && s.tensor == 1)
    s.without_use.emplace_back("--sequence-parallel with one device in the tensor group");
  s.context = a.number(s, "context-parallel-size", "plan.group.context", 1);
  const std::string exchange = join(a.words("cp-comm-type"), " ");  // A word, or one for each layer.
  if (exchange == "p2p" || exchange == "all_gather" || exchange == "a2a")
    s.context_type = exchange, note_match(s, "cp-comm-type", "plan.group.context_type", exchange);
  else if (!exchange.empty())
    s.unmodeled.push_back("--cp-comm-type " + exchange);
  if (a.flag(s, "use-tp-pp-dp-mapping", "plan.group.order", "tp-cp-ep-pp-dp")) s.order = "tp-cp-ep-pp-dp";
}

void read_divided_state(MegatronArguments& a, TrainingSetup& s) {
  const bool has_fsdp = a.has("use-megatron-fsdp") || a.has("use-custom-fsdp");  // It has this optimizer anyway.
  if (a.take("use-distributed-optimizer") && !has_fsdp)
    s.shard = "optimizer", note_match(s, "use-distributed-optimizer", "plan.shard", s.shard);
  if (const std::string stage = a.word("zero-stage"); !stage.empty()) {  // Megatron-DeepSpeed.
    s.shard = stage == "1" ? "optimizer" : stage == "2" ? "gradients" : stage == "3" ? "weights" : "none";
    note_match(s, "zero-stage", "plan.shard", s.shard);
    if (s.shard == "none" && a.has("bf16"))
      s.assumed.emplace_back("DeepSpeed's bf16 optimizer divides its state itself; plan.shard: optimizer says so");
  }
  const std::string strategy = a.word("data-parallel-sharding-strategy");
  const bool fsdp = a.take("use-megatron-fsdp"), custom_fsdp = a.take("use-custom-fsdp");
  if (a.take("use-torch-fsdp2")) s.shard = "weights", note_match(s, "use-torch-fsdp2", "plan.shard", s.shard);
  // no_shard was the default until 0.17, and always that of --use-custom-fsdp.
  const bool divides_nothing = strategy.empty() && (custom_fsdp || a.is_before_release("0.18"));
  if (fsdp || custom_fsdp) {
    s.shard = strategy == "optim_grads" ? "gradients" : strategy == "optim" ? "optimizer" : "weights";
    if (strategy == "no_shard" || divides_nothing) s.shard = "none";
    note_match(s, "use-megatron-fsdp", "plan.shard", s.shard);
  }
  const std::string optimizer = a.word("optimizer");
  if (!optimizer.empty() && optimizer != "adam") s.unmodeled.push_back("--optimizer " + optimizer);
  const int copies = a.find_number("num-distributed-optimizer-instances").value_or(1);
  if (copies > 1 && !s.shard.empty() && s.shard != "none") {
    s.shard_copies = copies;
    s.matched.push_back(fmt::format("--num-distributed-optimizer-instances {} -> plan.shard.within", copies));
  }
}

/// The recipe of fp8 is delayed scaling where none is named; how often values are scaled is not modeled.
void read_precision(MegatronArguments& a, TrainingSetup& s) {
  const std::string format = a.word("fp8-format"), recipe = a.word("fp8-recipe");
  s.precision = "fp32";
  if (a.take("fp16")) s.precision = "fp16";
  if (a.take("bf16")) s.precision = "bf16";
  if (!format.empty()) s.precision = recipe == "mxfp8" ? "mxfp8" : "fp8";
  if (!a.word("fp4-format").empty()) s.precision = "nvfp4", a.take("fp4-recipe");
  if (recipe == "blockwise" || recipe == "custom") s.unmodeled.push_back("--fp8-recipe " + recipe);
  s.matched.push_back("number format -> run.precision: " + s.precision);
}

/// Gradients are kept and summed in 4 bytes with --bf16, and in 2 with --fp16, unless an option says otherwise.
void read_gradient_bytes(MegatronArguments& a, TrainingSetup& s) {
  const char* const accumulate = "accumulate-allreduce-grads-in-fp32";
  const char* const in_bf16 = "grad-reduce-in-bf16";
  const bool wide = a.take(accumulate), narrow = a.take(in_bf16);
  const bool in_stack = software_stack(s.software).gradient_bytes >= 4;
  const int bytes = narrow || (s.precision == "fp16" && !wide) ? 2 : wide ? 4 : 0;
  if (bytes > 0 && (bytes == 4) != in_stack) s.gradient_bytes = bytes;
  const char* const option = narrow ? in_bf16 : accumulate;
  if ((narrow || wide) && s.gradient_bytes > 0)
    note_match(s, option, "software.gradient_bytes", std::to_string(bytes));
  else if (narrow || wide)
    note_match(s, option, "software", s.software);
  else if (s.gradient_bytes > 0)
    s.assumed.push_back(fmt::format("with --fp16 and without --{} gradients have {} bytes", accumulate, bytes));
}

/// Options that Megatron-LM had only for some years say which stack it is.
void read_software(MegatronArguments& a, TrainingSetup& s) {
  s.software = "megatron-core";
  const bool old = a.take("DDP-impl"), deepspeed = a.take("deepspeed");
  if (old) s.software = "megatron-2021", note_match(s, "DDP-impl", "software", s.software);
  if (deepspeed) s.software = "megatron-deepspeed", note_match(s, "deepspeed", "software", s.software);
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
  const auto count = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const std::string text = a.word(name);
      if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) return a.find_number(name);
    }
    return std::optional<int>();
  };
  const std::optional<int> each = count({"nproc_per_node", "nproc-per-node", "num_gpus"}),
                           nodes = count({"nnodes", "num_nodes"});
  const std::int64_t group = std::int64_t{s.ranks} * s.tensor * s.context;
  const std::int64_t started = each && nodes ? std::int64_t{*each} * *nodes : 0;
  if (options.devices > 0) {
    if (started > 0 && started != options.devices)
      s.assumed.push_back(
          fmt::format("the script starts {} processes, --nproc_per_node {} x --nnodes {}, and --devices {} counts here",
                      started, *each, *nodes, options.devices));
    return;
  }
  if (started > 0 && started % group != 0)
    a.break_rule("devices", a.has("nnodes") ? "nnodes" : "pipeline-model-parallel-size",
                 fmt::format("{} cannot be divided into groups of {}", pluralize(started, "GPU"), group),
                 "a multiple of the product of pipeline, tensor and context parallelism");
  if (started > 0) {
    s.replicas = static_cast<int>(started / group);
    s.matched.push_back(fmt::format("--nproc_per_node {} --nnodes {} -> replicas: {}", *each, *nodes, s.replicas));
  } else {
    s.assumed.emplace_back("the number of GPUs is not known, so there is one replica; --devices NUMBER changes that");
  }
}

/// Without a batch each replica has one micro-batch. Of a batch that grows, the last value counts.
void read_batch(MegatronArguments& a, TrainingSetup& s, std::int64_t replicas) {
  constexpr const char* kBatch = "global-batch-size";
  constexpr const char* kSteps = "step-batch-size-schedule";
  s.global_batch = a.number(s, kBatch, "run.global_batch");
  if (s.global_batch > 0 || s.micro_batch_size == 0) return;
  if (!a.has(kSteps)) {
    const std::int64_t each = std::max<std::int64_t>(replicas, 1), batch = s.micro_batch_size * each;
    if (batch > MegatronArguments::kMost)
      a.refuse("micro-batch-size",
               fmt::format("{} x {} is a batch of more than {} samples, which is not modeled", s.micro_batch_size,
                           pluralize(each, "replica"), MegatronArguments::kMost),
               "a smaller micro-batch");
    s.global_batch = static_cast<int>(batch);
    s.assumed.push_back(fmt::format("without --{} each replica has one micro-batch, so run.global_batch is {}", kBatch,
                                    s.global_batch));
    return;
  }
  const std::string steps = a.word(kSteps), last = steps.substr(steps.find_last_of(':') + 1);
  std::string why;
  const std::optional<double> batch = config::parse_number(last, why);
  if (!batch || !(*batch >= 1 && *batch <= MegatronArguments::kMost) || *batch != std::floor(*batch))
    a.refuse(kSteps, fmt::format("'{}' does not end in a number of samples", steps),
             "THRESHOLD:SAMPLES, as 0:384 200B:768");
  s.global_batch = static_cast<int>(*batch);
  note_match(s, kSteps, "run.global_batch", last);
}

/// Options with which Megatron-LM trains another model, or divides it in another way.
void refuse_other_models(const MegatronArguments& a) {
  for (const char* option : {"hybrid-layer-pattern", "hybrid-override-pattern", "hybrid-context-parallel",
                             "heterogeneous-layers-config-path", "heterogeneous-layers-config-encoded-json",
                             "tensor-parallel-num-weight-shards", "expert-tensor-parallel-num-weight-shards"})
    if (a.has(option))
      a.refuse(option, "no model here has such layers or groups", "leave it out, or write the scenario by hand");
}

/// Data-parallel replicas; 0 where no number of GPUs is known.
std::int64_t replicas_of(const MegatronArguments& a, const TrainingSetup& s, const SetupOptions& options) {
  const std::int64_t group = std::int64_t{s.ranks} * s.tensor * s.context;
  if (options.devices == 0) return s.replicas;
  if (options.devices % group != 0)
    a.refuse_all(fmt::format("{} cannot be divided into groups of {}", pluralize(options.devices, "device"), group),
                 "--devices: a multiple of the product of pipeline, tensor and context parallelism", "devices");
  return options.devices / group;
}

/// Whether a device of the cluster is older than Blackwell, the first GPU with products in nvfp4.
bool has_older_devices(const SetupOptions& options) {
  const std::optional<Cluster> cluster = cluster_named_by(options);
  if (!cluster) return false;
  for (const DeviceType& type : cluster->types) {
    const std::optional<Accelerator> preset = find_device_preset(type.preset);
    if (preset && preset->has_kernels() && !preset->has(NumberFormat::NvFp4)) return true;
  }
  return false;
}

/// What the script does not say of the environment may be set elsewhere.
void check_connections(const MegatronArguments& a, const TrainingSetup& s, const SetupOptions& options) {
  const std::optional<std::string> connections = a.variable("CUDA_DEVICE_MAX_CONNECTIONS");
  const bool excepted =
      a.has("use-megatron-fsdp") || a.has("use-torch-fsdp2") || a.has("overlap-moe-expert-parallel-comm");
  if (!connections || *connections == "1" || excepted || (s.tensor == 1 && s.context == 1)) return;
  if (has_older_devices(options) || a.is_before_release("0.12"))
    a.break_rule("connections", s.tensor > 1 ? "tensor-model-parallel-size" : "context-parallel-size",
                 "tensor and context parallelism need CUDA_DEVICE_MAX_CONNECTIONS=1 on GPUs before Blackwell",
                 "export CUDA_DEVICE_MAX_CONNECTIONS=1");
}

}  // namespace

namespace {

/// The release that the options name, without the number of a patch. InputError where its options are not known.
std::string release_of(const SetupOptions& options, const std::string& file) {
  if (options.release.empty()) return {};
  try {
    return std::string(at_release(software_stack("megatron-core"), options.release).release);
  } catch (const InputError& error) {
    const Diagnostic& d = error.problems().front();
    throw InputError({{{file, 0, 0}, "--release", d.message, d.help, "release"}});
  }
}

}  // namespace

TrainingSetup read_megatron(const std::string& text, const std::string& file, const SetupOptions& options) {
  MegatronArguments arguments(text, file, release_of(options, file));
  refuse_other_models(arguments);
  TrainingSetup setup;
  read_software(arguments, setup);
  const bool older = setup.software != "megatron-core";
  if (!older) setup.release = arguments.release();
  arguments.check_releases(setup);
  const MegatronShape shape = read_megatron_model(arguments, setup, options);
  read_groups(arguments, setup);
  read_megatron_pipeline(arguments, setup, shape);
  read_divided_state(arguments, setup);
  read_megatron_recomputation(arguments, setup, shape);
  read_megatron_offload(arguments, setup, shape, options);
  read_precision(arguments, setup);
  read_gradient_bytes(arguments, setup);
  read_dropout(arguments, setup, shape.flash_attention);
  setup.micro_batch_size = arguments.number(setup, "micro-batch-size", "plan.micro_batch_size");
  read_devices(arguments, setup, options);
  const std::int64_t replicas = replicas_of(arguments, setup, options);
  read_batch(arguments, setup, replicas);
  if (!older) {
    check_megatron_rules(arguments, setup, shape, replicas);
    check_connections(arguments, setup, options);
  }
  read_megatron_overlap(arguments, setup, std::max<std::int64_t>(replicas, 1));
  arguments.sort_others(setup);
  return setup;
}

}  // namespace stagecraft
