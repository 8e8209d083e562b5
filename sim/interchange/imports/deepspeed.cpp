// Reads a JSON configuration of DeepSpeed (deepspeed.ai/docs/config-json) as a TrainingSetup, for `import deepspeed`;
// export deepspeed writes what this reads.

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json_reader.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/interchange/rules/deepspeed.hpp"

namespace stagecraft {
namespace {

const std::set<std::string> kWithoutUseHere{
    "optimizer",  "scheduler",         "steps_per_print", "wall_clock_breakdown", "tensorboard",
    "wandb",      "gradient_clipping", "flops_profiler",  "csv_monitor",          "comms_logger",
    "checkpoint", "dump_state",        "elasticity",      "data_efficiency",      "curriculum_learning"};

/// Keys of zero_optimization about checkpoints and checks.
const std::set<std::string> kZeroWithoutUse{"stage3_gather_16bit_weights_on_model_save", "load_from_fp32_weights",
                                            "elastic_checkpoint", "ignore_unused_parameters"};

/// Keys of AutoEP that change the time: the model of the scenario has these.
const std::set<std::string> kOfGroups{"num_expert_groups",         "num_limited_groups", "top_k",      "use_grouped_mm",
                                      "disable_triton_grouped_mm", "combine_impl",       "score_apply"};

class DeepspeedReader {
 public:
  DeepspeedReader(const Json& json, const std::string& file, const SetupOptions& options)
      : json_(json), file_(file), options_(options) {}

  TrainingSetup read() {
    s_.schedule = "1f1b";
    s_.software = "megatron-deepspeed";
    read_batch();
    if (const Json* pipeline = section("pipeline")) read_pipeline(*pipeline);
    if (s_.ranks == 0) refuse("pipeline.stages", "a pipeline has at least one stage", "1, or leave pipeline out");
    read_groups();
    read_sharding();
    derive_batch();
    s_.precision = enabled("bf16") ? "bf16" : enabled("fp16") ? "fp16" : "fp32";
    s_.matched.push_back("number format -> run.precision: " + s_.precision);
    check_rules();
    for (const auto& [key, value] : json_.members()) {
      if (used_.contains(key)) continue;
      (kWithoutUseHere.contains(key) ? s_.without_use : s_.unmodeled).push_back(key);
    }
    return std::move(s_);
  }

 private:
  static constexpr int kMost = 1'000'000;  ///< No number is above it here.
  static constexpr const char* kOfTrainer = "Hugging Face's Trainer has the value of 'auto'";

  [[noreturn]] void refuse(const std::string& key, std::string message, std::string help,
                           const char* code = "import") const {
    throw InputError({{{file_, 0, 0}, key, std::move(message), std::move(help), code}});
  }

  int number(const Json& object, const std::string& path, const char* key, int fallback) {
    const Json* value = object.find(key);
    if (&object == &json_) used_.insert(key);
    if (value == nullptr || (value->is_string() && value->text() == "auto")) return fallback;
    const double n = value->is_number() ? value->number() : -1;
    if (n < 0 || n > kMost || n != std::floor(n))
      refuse(path + key, fmt::format("this is no whole number from 0 to {}", kMost), "correct the file");
    s_.matched.push_back(fmt::format("{}{}: {}", path, key, n));
    return static_cast<int>(n);
  }

  const Json* section(const char* key) {
    const Json* value = json_.find(key);
    used_.insert(key);
    if (value != nullptr && !value->is_object() && !value->is_null())
      refuse(key, "this is no object, which DeepSpeed has here", "{\"...\": ...}, or leave it out");
    return value && value->is_object() ? value : nullptr;
  }

  bool enabled(const char* key) {
    const Json* part = section(key);
    const Json* value = part ? part->find("enabled") : nullptr;
    const bool is_precision = key == std::string("bf16") || key == std::string("fp16");
    if (value && is_precision && *value == Json("auto"))
      refuse(key + std::string(".enabled"), kOfTrainer, "true or false, as the Trainer has --bf16 or --fp16");
    if (value && !value->is_bool())
      refuse(key + std::string(".enabled"), "this is neither true nor false", "true or false");
    return value && *value == Json(true);
  }

  void read_batch() {
    constexpr const char *kBatch = "train_batch_size", *kMicroBatch = "train_micro_batch_size_per_gpu";
    const Json *batch = json_.find(kBatch), *micro_batch = json_.find(kMicroBatch);
    const auto is_of_trainer = [](const Json* value) { return value && *value == Json("auto"); };
    const bool has_neither = (!batch || is_of_trainer(batch)) && (!micro_batch || is_of_trainer(micro_batch));
    if (has_neither && (batch || micro_batch))
      refuse(micro_batch ? kMicroBatch : kBatch, kOfTrainer,
             fmt::format("{}: its per_device_train_batch_size", kMicroBatch));
    const int micro = number(json_, "", kMicroBatch, 0);
    const int steps = accumulation_ = number(json_, "", "gradient_accumulation_steps", 0);
    s_.global_batch = number(json_, "", kBatch, 0);
    s_.micro_batch_size = micro;
    if (micro > 0 && steps > 0 && s_.global_batch > 0) {
      const std::int64_t each = std::int64_t{micro} * steps;
      if (s_.global_batch % each != 0)
        refuse("train_batch_size", fmt::format("{} is no multiple of {} x {}", s_.global_batch, micro, steps),
               "DeepSpeed: train_batch_size = micro-batch x accumulation x replicas", "batch");
      s_.replicas = static_cast<int>(s_.global_batch / each);
      s_.matched.push_back(fmt::format("train_batch_size / (micro-batch x accumulation) -> replicas: {}", s_.replicas));
    } else if (options_.devices == 0) {
      s_.assumed.emplace_back("the number of replicas is not known, so there is one; --devices NUMBER changes that");
    }
  }

  /// AutoTP divides matrices as Megatron-LM does, without sequence parallelism.
  void read_groups() {
    const Json* tensor = section("tensor_parallel");
    if (tensor != nullptr) s_.tensor = std::max(1, number(*tensor, "tensor_parallel.", "autotp_size", 1));
    for (const auto& [key, value] : tensor ? tensor->members() : Json::Object())
      if (key != "autotp_size") s_.unmodeled.push_back("tensor_parallel." + key);
    if (s_.tensor > 1 && !has_autotp(s_.ranks))
      refuse("tensor_parallel.autotp_size", "no pipeline has AutoTP: the model's code divides its matrices",
             "autotp_size: 1, or leave pipeline out");
    read_sequence_groups();
    read_expert_groups();
    if (options_.devices > 0 && options_.devices % (std::int64_t{s_.ranks} * s_.tensor) != 0)
      refuse("tensor_parallel.autotp_size",
             fmt::format("{} cannot be divided into groups of {}", pluralize(options_.devices, "GPU"),
                         std::int64_t{s_.ranks} * s_.tensor),
             "a degree that divides the GPUs", "stages");
  }

  /// Ulysses divides sequences, and exchanges rows for heads around each attention.
  void read_sequence_groups() {
    s_.context = number(json_, "", "sequence_parallel_size", 1);
    if (s_.context == 0) refuse("sequence_parallel_size", "a sequence is on one GPU at least", "1, or leave it out");
    if (s_.context == 1) return;
    s_.context_type = "a2a";
    s_.matched.push_back(fmt::format("sequence_parallel_size -> plan.group: context {}, context_type a2a", s_.context));
    const int replicas = number(json_, "", "data_parallel_size", 0);
    if (s_.replicas == 0 && options_.devices == 0) s_.replicas = replicas;
  }

  /// AutoEP has experts in groups of devices of a stage, and exchanges rows by all-to-alls.
  void read_expert_groups() {
    const Json* experts = section("expert_parallel");
    if (experts == nullptr) return;
    const std::string path = "expert_parallel.";
    if (!enabled("expert_parallel")) return s_.without_use.push_back("expert_parallel, which is not enabled");
    s_.expert = std::max(1, number(*experts, path, "autoep_size", 1));
    s_.expert_tensor = std::max(1, number(*experts, path, "expert_tensor_parallel_size", 1));
    s_.dispatcher = "alltoall";
    s_.matched.push_back(fmt::format("expert_parallel -> plan.group: expert {}", s_.expert));
    for (const auto& [key, value] : experts->members())
      if (kOfGroups.contains(key))
        s_.unmodeled_time.push_back(path + key);
      else if (key != "enabled" && key != "autoep_size" && key != "expert_tensor_parallel_size")
        s_.without_use.push_back(path + key);
  }

  std::int64_t replicas() const {
    const std::int64_t each = std::int64_t{s_.ranks} * s_.tensor * s_.context;
    return options_.devices > 0 ? options_.devices / each : s_.replicas;
  }

  /// DeepSpeed derives what is not given of batch = micro-batch x accumulation x replicas.
  void derive_batch() {
    const std::int64_t count = replicas();
    if (count == 0) return;
    const std::int64_t each = s_.global_batch / count;
    const std::int64_t derived = s_.micro_batch_size * count * std::max(1, accumulation_);
    if (s_.global_batch == 0 && derived > kMost)
      refuse("train_batch_size",
             fmt::format("micro-batch {} x accumulation {} x {} is a batch of more than {} samples, which is not "
                         "modeled",
                         s_.micro_batch_size, std::max(1, accumulation_), pluralize(count, "replica"), kMost),
             "a smaller micro-batch or accumulation");
    if (s_.global_batch == 0 && derived > 0)
      s_.global_batch = static_cast<int>(derived);
    else if (s_.global_batch > 0 && s_.micro_batch_size == 0)
      s_.micro_batch_size = static_cast<int>(std::max<std::int64_t>(1, each / std::max(1, accumulation_)));
    else
      return;
    s_.assumed.push_back(fmt::format("DeepSpeed derives a batch of {} in micro-batches of {} for {}", s_.global_batch,
                                     s_.micro_batch_size, pluralize(count, "replica")));
  }

  void check_rules() {
    const Json* zero = section("zero_optimization");
    const Json* overlap = zero ? zero->find("overlap_comm") : nullptr;
    const DeepspeedRun run{.devices = options_.devices,
                           .stages = s_.ranks,
                           .tensor = s_.tensor,
                           .zero = zero_,
                           .context = s_.context,
                           .expert = s_.expert,
                           .expert_tensor = std::max(1, s_.expert_tensor),
                           .replicas = replicas(),
                           .batch = s_.global_batch,
                           .micro_batch = s_.micro_batch_size,
                           .accumulation = accumulation_,
                           .mics = mics_,
                           .fp16 = enabled("fp16"),
                           .bf16 = enabled("bf16"),
                           .overlaps_sums = overlap && *overlap == Json(true),
                           .adds_gradients = adds_gradients(),
                           .offloads_a_part = offloads_a_part(zero),
                           .divides_experts = enabled("expert_parallel"),
                           .divides_otherwise = divides_otherwise(zero)};
    std::vector<Diagnostic> problems;
    for (const Diagnostic& broken : broken_deepspeed_rules(run)) {
      const FrameworkRule& rule = find_rule(deepspeed_rules(), broken.code);
      const std::string message = refused_by(deepspeed_rules(), rule) + broken.message;
      if (rule.only_warns())
        s_.assumed.push_back(message);
      else
        problems.push_back({{file_, 0, 0}, "", message, broken.help, broken.code});
    }
    if (!problems.empty()) throw InputError(std::move(problems));
  }

  bool adds_gradients() {
    const Json* operation = json_.find("gradient_allreduce_op");
    if (operation == nullptr) return false;
    used_.insert("gradient_allreduce_op");
    const std::string word = operation->is_string() ? lower_case(operation->text()) : "";
    if (word != "sum" && word != "mean")
      refuse("gradient_allreduce_op", "DeepSpeed has no such operation", "mean, or sum");
    s_.without_use.emplace_back("gradient_allreduce_op");
    return word == "sum";
  }

  static bool offloads_a_part(const Json* zero) {
    const Json* offload = zero ? zero->find("offload_optimizer") : nullptr;
    const Json* ratio = offload ? offload->find("ratio") : nullptr;
    return ratio && ratio->is_number() && ratio->number() < 1;
  }

  bool divides_otherwise(const Json* zero) const {
    const auto has = [](const Json* object, const char* key) { return object && object->find(key); };
    return s_.tensor > 1 || has(&json_, "sequence_parallel_size") || has(zero, "offload_optimizer") ||
           has(zero, "offload_param") || mics_ > 0 || has(zero, "zero_hpz_partition_size");
  }

  /// The model's code makes the stages, so DeepSpeed does not use `partition`. An interval of recomputation counts
  /// layers of a stage.
  void read_pipeline(const Json& pipeline) {
    s_.ranks = number(pipeline, "pipeline.", "stages", 1);
    const int interval = number(pipeline, "pipeline.", "activation_checkpoint_interval", 0);
    if (interval > 0) s_.recompute = interval == 1 ? "layers" : "full";
    if (interval > 1)
      s_.assumed.push_back(
          fmt::format("plan.recompute: full recomputes a stage as a whole, and DeepSpeed recomputes {} at once",
                      pluralize(interval, "layer")));
    for (const auto& [key, value] : pipeline.members())
      if (key == "partition" || key == "seed_layers")
        s_.without_use.push_back("pipeline." + key);
      else if (key != "stages" && key != "activation_checkpoint_interval")
        s_.unmodeled.push_back("pipeline." + key);
  }

  void read_sharding() {
    const Json* zero = section("zero_optimization");
    if (zero == nullptr) return;
    const int stage = number(*zero, "zero_optimization.", "stage", 0);
    if (stage > 3) refuse("zero_optimization.stage", fmt::format("there is no ZeRO-{}", stage), "0, 1, 2 or 3");
    constexpr const char* kShards[] = {"none", "optimizer", "gradients", "weights"};
    s_.shard = kShards[stage];
    zero_ = stage;
    read_mics(*zero);
    const bool has_buckets = stage == 1 && s_.ranks == 1 && read_gradient_buckets(*zero);
    const bool has_states = read_offloaded_states(*zero);
    for (const auto& [key, value] : zero->members())
      if (key != "stage" && key != "mics_shard_size" && !(has_states && key == "offload_optimizer") &&
          !(has_buckets && (key == "overlap_comm" || key == "reduce_bucket_size")))
        (kZeroWithoutUse.contains(key) || (stage == 3 && key == "overlap_comm" && value == Json(true)) ? s_.without_use
                                                                                                       : s_.unmodeled)
            .push_back("zero_optimization." + key);
  }

  /// MiCS divides weights over a part of the replicas. -1 is DeepSpeed's own value, without MiCS; below ZeRO-3 it does
  /// not use the number.
  void read_mics(const Json& zero) {
    const Json* size = zero.find("mics_shard_size");
    if (size == nullptr || (size->is_number() && size->number() == -1)) return;
    if (zero_ < 3) return s_.without_use.push_back("zero_optimization.mics_shard_size");
    mics_ = number(zero, "zero_optimization.", "mics_shard_size", 0);
    if (mics_ > 0) s_.shard = fmt::format("{{state: weights, within: {}}}", mics_);
  }

  /// States of the optimizer that the host keeps and updates; then the weights come up. DeepSpeed's `ratio` of them is
  /// for ZeRO-3.
  bool read_offloaded_states(const Json& zero) {
    const Json* states = zero.find("offload_optimizer");
    if (states == nullptr || !states->is_object()) return false;
    const std::string path = "zero_optimization.offload_optimizer";
    const Json* device = states->find("device");
    const std::string word = device && device->is_string() ? device->text() : "none";
    if (word == "none") return s_.without_use.push_back(path + ", whose device is none"), true;
    const std::optional<Cluster> cluster = cluster_named_by(options_);
    if (word != "cpu" || zero_ == 0 || !cluster || cluster->memories.empty()) return false;
    const Json* ratio = states->find("ratio");
    const double share = ratio && ratio->is_number() ? ratio->number() : 1;
    if (!(share > 0 && share <= 1)) refuse(path + ".ratio", "this is no share of the states", "a number up to 1");
    s_.offload = fmt::format("{{optimizer: {{share: {}, beside: false}}}}", shortest(share));
    s_.matched.push_back(fmt::format("{} -> plan.offload: {}", path, s_.offload));
    for (const auto& [key, value] : states->members())
      if (key != "device" && key != "ratio") s_.without_use.push_back(path + "." + key);
    return true;
  }

  /// ZeRO-1 sums gradients next to the last backward if it is asked to; the size of a bucket counts gradients. A
  /// pipeline of DeepSpeed sums them after it.
  bool read_gradient_buckets(const Json& zero) {
    const Json* overlap = zero.find("overlap_comm");
    if (overlap == nullptr || !(*overlap == Json(true))) return false;
    const Json* size = zero.find("reduce_bucket_size");
    const bool given = size != nullptr && !(size->is_string() && size->text() == "auto");
    const double gradients = !given ? 5e8 : size->is_number() ? size->number() : 0;
    if (!(gradients >= 1 && gradients <= 1e12))
      refuse("zero_optimization.reduce_bucket_size", "this is no number from 1 to 10^12", "correct the file");
    s_.gradient_buckets = fmt::format("{:.0f} B", gradients * stack_of(s_).gradient_bytes);
    s_.matched.push_back("zero_optimization.overlap_comm -> run.gradient_buckets: " + s_.gradient_buckets);
    return true;
  }

  const Json& json_;
  const std::string& file_;
  const SetupOptions& options_;
  std::set<std::string> used_;
  TrainingSetup s_;
  int accumulation_ = 0, zero_ = 0, mics_ = 0;  ///< Passes for each step, the stage of ZeRO, replicas that MiCS joins.
};

/// The text without the comments and the last commas that Hjson, DeepSpeed's reader, takes; lines stay where they are.
std::string without_comments(std::string text) {
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (; from < std::min(to, text.size()); ++from)
      if (text[from] != '\n') text[from] = ' ';
  };
  std::size_t comma = std::string::npos;  // With nothing but white space and comments after it.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("/*"))
      blank(i, std::min(text.find("*/", i + 2), text.size()) + 2);
    else if (rest.starts_with("//") || rest.starts_with('#'))
      blank(i, text.find('\n', i));
    const char c = text[i];
    if ((c == '}' || c == ']') && comma != std::string::npos) text[comma] = ' ';
    if (c == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') comma = c == ',' ? i : std::string::npos;
  }
  return text;
}

}  // namespace

TrainingSetup read_deepspeed(const std::string& text, const std::string& file, const SetupOptions& options) {
  const auto refuse = [&](std::string message) {
    throw InputError({{{file, 0, 0}, {}, std::move(message), "give a configuration of DeepSpeed", "import"}});
  };
  Json json;
  try {
    json = parse_json(without_comments(text));
  } catch (const JsonSyntaxError& error) {
    refuse(with_line(error, text));
  }
  if (!json.is_object()) refuse("the file is no object of JSON");
  return DeepspeedReader(json, file, options).read();
}

}  // namespace stagecraft
