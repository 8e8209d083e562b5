// Reads a job configuration of torchtitan as a TrainingSetup, for `import torchtitan`: the TOML file of releases up to
// 0.2.2 (torchtitan/config/job_config.py), or a Python function or a command line of releases since 2026-02-23.

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/toml.hpp"
#include "sim/interchange/imports/torchtitan_command.hpp"
#include "sim/interchange/imports/torchtitan_main.hpp"
#include "sim/interchange/imports/torchtitan_python.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/interchange/rules/torchtitan.hpp"
#include "sim/plan/layout_letters.hpp"

namespace stagecraft {
namespace {

constexpr std::pair<const char*, const char*> kSchedules[] = {{"1F1B", "1f1b"},
                                                              {"GPipe", "gpipe"},
                                                              {"Interleaved1F1B", "interleaved"},
                                                              {"InterleavedZeroBubble", "interleaved-zb"},
                                                              {"LoopedBFS", "looped-bfs"},
                                                              {"ZBVZeroBubble", "zb-v"},
                                                              {"DualPipeV", "dualpipev"}};

/// Sections about data, logs, checkpoints and learning rates.
const std::set<std::string> kSectionsWithoutUse{
    "job",        "profiling",      "metrics",   "optimizer",       "lr_scheduler", "checkpoint",
    "validation", "experimental",   "comm",      "fault_tolerance", "profiler",     "tokenizer",
    "dataloader", "hf_assets_path", "validator", "debug",           "loss",         "dump_folder"};

class TorchtitanReader {
 public:
  TorchtitanReader(const std::string& text, const std::string& file, const SetupOptions& options)
      : file_(file),
        options_(options),
        main_(is_torchtitan_command(text) || is_torchtitan_python(text)),
        devices_(options.devices) {
    if (is_torchtitan_python(text)) {
      values_ = read_torchtitan_python(text, file, options.config, main_);
      if (!main_)
        s_.assumed.emplace_back("the keys are of torchtitan before 2026-08-20, and are judged by the rules of 0.2.2");
    } else {
      if (!options.config.empty())
        throw InputError({{{file, 0, 0},
                           {},
                           "--config names a function of a Python file, and this is none",
                           "leave --config out",
                           "import"}});
      if (main_)
        read_command(read_shell(text));
      else
        values_ = read_toml(text, file), check_keys();
    }
  }

  TrainingSetup read() {
    if (std::none_of(values_.begin(), values_.end(), [](const auto& v) {
          return v.first.starts_with("training.") || v.first.starts_with("parallelism.");
        }))
      throw InputError({{{file_, 0, 0},
                         {},
                         "there is neither a table 'training' nor 'parallelism'",
                         "give a job configuration of torchtitan, or --module and --config with their options",
                         "import"}});
    s_.software = "torchtitan";
    read_precision();
    read_model();
    read_degrees();
    read_schedule();
    read_batch();
    check_rules();
    if (s_.micro_batch_size == 0)
      throw InputError({{{file_, 0, 0}, "training", "there is no local_batch_size", "add it to the file", "import"}});
    read_checkpointing();
    sort_others();
    return std::move(s_);
  }

 private:
  /// Keys that no release up to 0.2.2 has.
  void check_keys() const {
    std::vector<Diagnostic> problems;
    for (const auto& [key, given] : values_)
      if (const std::optional<std::string> help = help_for_unknown_key(key, false))
        problems.push_back(
            {{file_, given.line, 1},
             key,
             refused_by(torchtitan_rules(), find_rule(torchtitan_rules(), "keys")) + "there is no such key",
             *help,
             "keys"});
    if (!problems.empty()) throw InputError(std::move(problems));
  }

  /// What starts the program says how many GPUs there are, where --devices does not.
  void read_command(const ShellScript& script) {
    values_ = read_torchtitan_command(script, file_);
    s_.assumed = shell_notes(script);
    const int launched = launched_gpus(script);
    if (launched == 0) return;
    if (devices_ == 0)
      devices_ = launched, s_.matched.push_back(fmt::format("{} are started -> replicas", pluralize(launched, "GPU")));
    else if (launched != devices_)
      s_.assumed.push_back(fmt::format("the command starts {}, and --devices {} counts here",
                                       pluralize(launched, "process", "es"), devices_));
  }

  const TomlValue* take(const std::string& key) {
    const auto it = values_.find(key);
    if (it == values_.end()) return nullptr;
    used_.insert(key);
    return &it->second;
  }

  [[noreturn]] void refuse(const std::string& key, std::string message, std::string help) const {
    throw InputError({{{file_, values_.at(key).line, 1}, written(key), std::move(message), std::move(help), "import"}});
  }

  /// A key as the configuration has it.
  std::string written(const std::string& key) const { return main_ ? torchtitan_key_of_main(key) : key; }

  std::string text(const std::string& key) {
    const TomlValue* given = take(key);
    if (given == nullptr) return {};
    if (!given->value.is_string()) refuse(key, "this is no string", "write it in quotes");
    return given->value.text();
  }

  /// A whole number from `low` on; -1 stands for "what is left" there.
  int number(const std::string& key, int fallback, int low = 1) {
    const TomlValue* given = take(key);
    if (given == nullptr) return fallback;
    const double value = given->value.is_whole() ? given->value.number() : -2;
    if (value < low || value > 1e6)
      refuse(key, fmt::format("this is no whole number from {} to 1000000", low), "correct the file");
    return static_cast<int>(value);
  }

  void matched(const std::string& key, const std::string& field, const std::string& value) {
    if (values_.contains(key)) s_.matched.push_back(fmt::format("{} -> {}: {}", key, field, value));
  }

  /// Products run in bf16 unless they are told otherwise; converters replace linear layers by layers of torchao.
  void read_precision() {
    s_.precision = text("training.mixed_precision_param") == "float32" ? "fp32" : "bf16";
    matched("training.mixed_precision_param", "run.precision", s_.precision);
    const TomlValue* converters = take("model.converters");
    if (converters == nullptr) return;
    const std::string written = converters->value.dump();
    if (written.find("float8") != std::string::npos) s_.precision = "fp8";
    if (written.find("quantize.linear.mx") != std::string::npos) s_.precision = "mxfp8";
    if (written.find("quantize.linear.nvfp4") != std::string::npos) s_.precision = "nvfp4";
    matched("model.converters", "run.precision", s_.precision);
  }

  void read_model() {
    const std::string flavor = text("model.name") + " " + text("model.flavor");
    for (const TorchtitanFlavor& f : torchtitan_flavors())
      if (flavor == fmt::format("{} {}", f.name, f.flavor))
        flavor_ = &f, s_.model_name = f.model, matched("model.flavor", "model", f.model);
    if (!flavor_ && flavor.size() > 1)
      s_.assumed.push_back(
          fmt::format("torchtitan's model {} is not known here, so --model-name says its shape", flavor));
    s_.sequence = number("training.seq_len", 0);
    if (s_.sequence > 0) matched("training.seq_len", "model.sequence", std::to_string(s_.sequence));
  }

  void read_degrees() {
    const std::string p = "parallelism.";
    s_.ranks = number(p + "pipeline_parallel_degree", 1);
    s_.tensor = number(p + "tensor_parallel_degree", 1);
    s_.context = number(p + "context_parallel_degree", 1);
    s_.expert = number(p + "expert_parallel_degree", 1);
    s_.expert_tensor = number(p + "expert_tensor_parallel_degree", 0);
    const TomlValue* divides_rows = take(p + "enable_sequence_parallel");
    s_.sequence_parallel = s_.tensor > 1 && !(divides_rows && divides_rows->value == false);
    if (divides_rows) matched(p + "enable_sequence_parallel", "plan.group.sequence", divides_rows->value.dump());
    for (const auto& [key, field] : {std::pair{"pipeline_parallel_degree", "pipeline ranks"},
                                     {"tensor_parallel_degree", "plan.group.tensor"},
                                     {"context_parallel_degree", "plan.group.context"},
                                     {"expert_parallel_degree", "plan.group.expert"}})
      if (const TomlValue* given = take(p + key)) matched(p + key, field, given->value.dump());
    read_exchanges(p);
    const TomlValue* async = take(p + "enable_async_tensor_parallel");
    run_.async_tensor = async != nullptr && async->value == true;
    if (run_.async_tensor) {
      s_.overlap.emplace_back(Overlap::Tensor, true);
      matched(p + "enable_async_tensor_parallel", "software.overlap.tensor", "true");
      for (const char* key : {"compile.enable", "compile.components"})
        if (take(key) != nullptr) matched(key, "software.overlap.tensor", "true");
    }
    const int copies = number(p + "data_parallel_replicate_degree", 1);
    int shards = number(p + "data_parallel_shard_degree", -1, -1);
    if (shards == -1 && devices_ > 0) {
      const double each = static_cast<double>(s_.ranks) * s_.tensor * s_.context * copies;
      shards = std::max(1, static_cast<int>(devices_ / each));
    } else if (shards < 1) {
      shards = 1;
      knows_shards_ = false;
      s_.assumed.emplace_back(
          "data_parallel_shard_degree is left to the number of GPUs, which is not known, so it is 1; --devices NUMBER "
          "changes that");
    }
    run_.replicate = copies, run_.shard = shards;
    replicas_ = std::min<std::int64_t>(std::int64_t{copies} * shards, 1'000'000);
    if (options_.devices == 0) s_.replicas = static_cast<int>(replicas_);
    const std::string reshard = text(p + "fsdp_reshard_after_forward");
    if (shards > 1 || s_.context > 1) {  // Weights are divided over the context group too.
      const bool always = reshard == "always" || (reshard != "never" && s_.ranks == 1);
      s_.shard = fmt::format("{{state: weights, reshard: {}{}}}", always,
                             copies > 1 ? fmt::format(", within: {}", std::int64_t{shards} * s_.context) : "");
      s_.matched.push_back("data_parallel_shard_degree -> plan.shard: " + s_.shard);
    }
  }

  /// Keys and values are gathered unless they go round; experts exchange rows with NCCL unless DeepEP is named.
  void read_exchanges(const std::string& p) {
    const std::string rotation = text(p + "context_parallel_rotate_method"),
                      backend = text(p + "expert_parallel_comm_backend");
    if (s_.context > 1) s_.context_type = rotation == "alltoall" ? "p2p" : "all_gather";
    matched(p + "context_parallel_rotate_method", "plan.group.context_type", s_.context_type);
    const bool is_grouped = backend == "deepep" || backend == "hybridep";
    if (is_grouped) s_.dispatcher = "per_node";
    if (is_grouped) matched(p + "expert_parallel_comm_backend", "plan.group.dispatcher", s_.dispatcher);
    run_.exchanges_without_host = backend == "minimal_async_ep" ||
                                  (backend == "hybridep" && take("model.non_blocking_capacity_factor") != nullptr);
    const bool is_known = is_grouped || backend.empty() || backend == "standard" || backend == "minimal_async_ep";
    if (!is_known)
      refuse(p + "expert_parallel_comm_backend", fmt::format("there is no exchange of experts '{}'", backend),
             "standard, deepep, hybridep or minimal_async_ep");
    if (backend == "minimal_async_ep") s_.unmodeled.push_back(p + "expert_parallel_comm_backend = minimal_async_ep");
  }

  /// The names of the modules of each stage. The last norm runs with the scores here.
  void read_model_parts(const std::string& key) {
    const Json& parts = values_.at(key).value;
    if (!parts.is_array()) refuse(key, "this is no list of stages", "[[\"tok_embeddings\", \"layers.0\"], ...]");
    for (const Json& part : parts.items()) {
      if (!part.is_array()) refuse(key, "a stage is no list of modules", "[\"layers.0\", \"layers.1\"]");
      if (!s_.layout.empty()) s_.layout += "|";
      bool has_norm = false, has_scores = false;
      for (const Json& module : part.items()) {
        const std::string name = module.is_string() ? module.text() : "";
        has_norm = has_norm || name == "norm";
        const bool is_scores = name == "output" || name == "lm_head";
        has_scores = has_scores || is_scores;
        s_.layout += name == "tok_embeddings" ? "E" : is_scores ? "L" : name.starts_with("layers.") ? "t" : "";
      }
      if (has_norm && !has_scores)
        s_.assumed.emplace_back("the last norm is in a stage before the scores there, and with them here");
    }
    const auto stages = static_cast<int>(parts.items().size());
    if (stages == 0 || stages % s_.ranks != 0)
      refuse(key,
             fmt::format("{} for {}: each rank has as many stages as the others", pluralize(stages, "stage"),
                         pluralize(s_.ranks, "rank")),
             "as many stages on each rank");
    s_.chunks = stages / s_.ranks;
    matched(key, "plan.layout", s_.layout);
  }

  void read_schedule() {
    const std::string key = "parallelism.pipeline_parallel_schedule", name = text(key);
    s_.schedule = "1f1b";
    if (s_.ranks == 1) return;
    const auto entry =
        std::find_if(std::begin(kSchedules), std::end(kSchedules), [&](const auto& s) { return name == s.first; });
    if (!name.empty() && entry == std::end(kSchedules))
      refuse(key, fmt::format("the schedule '{}' is not known here", name), "a schedule of stagecraft list schedules");
    if (!name.empty()) s_.schedule = entry->second, matched(key, "run.schedule", s_.schedule);
    const bool single = s_.schedule == "1f1b" || s_.schedule == "gpipe";
    if (!single) s_.chunks = 2;  // torchtitan: two stages on each rank unless layers_per_stage is given.
    if (const std::string parts = "parallelism.module_fqns_per_model_part"; take(parts) != nullptr)
      return read_model_parts(parts);
    const std::string each = "parallelism.pipeline_parallel_layers_per_stage";
    const int embedding = number("parallelism.pipeline_parallel_first_stage_less_layers", 1, 0);
    const int scores = number("parallelism.pipeline_parallel_last_stage_less_layers", 1, 0);
    run_.first_less = embedding, run_.last_less = scores, run_.layers = flavor_ ? flavor_->layers : 0;
    if (const int layers = number(each, 0); layers > 0 && flavor_)
      read_stage_count(each, layers, flavor_->layers + embedding + scores);
    else if (layers > 0)
      s_.unmodeled.push_back(each);
    write_division(embedding, scores);
  }

  /// torchtitan's own division becomes a layout, because a planner would move layers.
  void write_division(int embedding, int scores) {
    const int stages = s_.ranks * s_.chunks;
    const std::vector<int> counts =
        flavor_ ? torchtitan_layers(flavor_->layers, stages, embedding, scores) : std::vector<int>();
    if (counts.empty())
      return s_.assumed.emplace_back("layers are divided by their times, and in torchtitan evenly"), void();
    for (std::size_t i = 0; i < counts.size(); ++i)
      s_.layout += (i == 0 ? "E" : "|") + (counts[i] > 1    ? fmt::format("t*{}", counts[i])
                                           : counts[i] == 1 ? std::string("t")
                                                            : std::string());
    s_.layout += "L";
    s_.matched.push_back("stages -> plan.layout: " + s_.layout);
  }

  /// Stages of this number of layers. `units` are all, where embedding and scores count as a layer each unless an
  /// option says less.
  void read_stage_count(const std::string& key, int layers, int units) {
    stages_ = (units + layers - 1) / layers;
    s_.chunks = std::max(1, stages_ / s_.ranks);
    matched(key, "stages", std::to_string(stages_));
  }

  /// InputError with every rule that the configuration breaks.
  void check_rules() {
    run_.main = main_;
    run_.devices = knows_shards_ ? devices_ : 0;
    run_.ranks = s_.ranks, run_.tensor = s_.tensor, run_.context = s_.context;
    run_.expert = knows_shards_ ? s_.expert : 1, run_.expert_tensor = s_.expert_tensor;
    if (!knows_shards_) run_.replicate = 1;
    const std::string name = text("parallelism.pipeline_parallel_schedule");
    run_.schedule = name.empty() ? "1F1B" : name;
    run_.stages = stages_ > 0 ? stages_ : std::int64_t{s_.ranks} * s_.chunks;
    run_.sequence = s_.sequence;
    if (flavor_)
      run_.heads = flavor_->heads, run_.key_value_heads = flavor_->key_value_heads, run_.experts = flavor_->experts;
    run_.compiles_model = compiles_model();
    const TomlValue* graphs = take("training.disable_cuda_graphs");
    run_.disables_graphs = graphs && graphs->value == true;
    run_.attention = text("model.attn_backend");
    run_.divides_rows = s_.tensor == 1 || s_.sequence_parallel;
    run_.recomputation = text("activation_checkpoint.mode");
    const TomlValue* overlap = take("parallelism.pipeline_parallel_expert_parallel_overlap");
    run_.overlaps_experts = !overlap || overlap->value == true;
    std::vector<Diagnostic> problems;
    for (const Diagnostic& broken : broken_torchtitan_rules(run_)) {
      const std::string key = key_of(broken.code);
      const auto given = values_.find(key);
      problems.push_back({{file_, given == values_.end() ? 0 : given->second.line, given == values_.end() ? 0 : 1},
                          given == values_.end() ? "" : written(key),
                          refused_by(torchtitan_rules(), find_rule(torchtitan_rules(), broken.code)) + broken.message,
                          broken.help,
                          broken.code});
    }
    if (!problems.empty()) throw InputError(std::move(problems));
  }

  bool compiles_model() const {
    const auto enabled = values_.find("compile.enable"), parts = values_.find("compile.components");
    return enabled != values_.end() && enabled->second.value == true &&
           (parts == values_.end() || parts->second.value.dump().find("\"model\"") != std::string::npos);
  }

  /// The key to which a rule applies first.
  static std::string key_of(const std::string& rule) {
    constexpr std::pair<std::string_view, const char*> kKeys[] = {
        {"expert-tensor", "parallelism.expert_tensor_parallel_degree"},
        {"expert-devices", "parallelism.expert_parallel_degree"},
        {"experts", "parallelism.expert_parallel_degree"},
        {"replicas-alone", "parallelism.data_parallel_replicate_degree"},
        {"sequence", "training.seq_len"},
        {"heads", "parallelism.tensor_parallel_degree"},
        {"key-value-heads", "parallelism.tensor_parallel_degree"},
        {"async-tensor", "parallelism.enable_async_tensor_parallel"},
        {"accumulation", "training.global_batch_size"},
        {"mesh", "parallelism.data_parallel_shard_degree"},
        {"stages-of-schedule", "parallelism.pipeline_parallel_schedule"},
        {"stages-of-ranks", "parallelism.pipeline_parallel_layers_per_stage"},
        {"compiled-schedule", "parallelism.pipeline_parallel_schedule"},
        {"layers-of-stages", "parallelism.pipeline_parallel_degree"},
        {"context-attention", "parallelism.context_parallel_degree"},
        {"memory-budget", "activation_checkpoint.mode"},
        {"expert-recompute", "activation_checkpoint.mode"},
        {"graphs", "parallelism.pipeline_parallel_degree"}};
    for (const auto& [name, key] : kKeys)
      if (name == rule) return key;
    return "training.local_batch_size";
  }

  void read_batch() {
    const int local = number("training.local_batch_size", 0), global = number("training.global_batch_size", -1, -1);
    const int old_local = number("training.batch_size", 0);
    const int each = local > 0 ? local : old_local;
    if (each == 0) return;
    s_.micro_batch_size = s_.ranks > 1 ? number("parallelism.pipeline_parallel_microbatch_size", 1) : each;
    const std::int64_t local_samples = std::int64_t{each} * replicas_;
    run_.tokens = std::int64_t{s_.micro_batch_size} * s_.sequence;
    run_.local_batch = each, run_.micro_batch = s_.ranks > 1 ? s_.micro_batch_size : 0;
    run_.micro_batches = s_.ranks > 1 && s_.micro_batch_size > 0 ? each / s_.micro_batch_size : 0;
    run_.global_batch = knows_shards_ && global > 0 ? global : 0;
    s_.global_batch = global > 0 ? global : static_cast<int>(std::min<std::int64_t>(local_samples, 1'000'000));
    matched("training.local_batch_size", "plan.micro_batch_size", std::to_string(s_.micro_batch_size));
    matched("training.global_batch_size", "run.global_batch", std::to_string(s_.global_batch));
    if (s_.ranks > 1 && s_.global_batch > local_samples)
      s_.assumed.emplace_back(
          "torchtitan flushes the pipeline for each local batch, and here once for the global batch");
  }

  /// Every n-th layer runs again: as many of each stage, and which of equal layers they are makes no difference.
  bool read_every_layer(const std::string& option) {
    std::string_view rest = option;
    const int every = read_number(rest).value_or(0);
    std::vector<std::ptrdiff_t> counts;
    if (flavor_ && s_.ranks * s_.chunks == 1) counts.push_back(flavor_->layers);
    if (!s_.layout.empty())
      for (const std::string& stage :
           stages_of_layout(s_.layout, [&](std::size_t, const std::string& why) { throw InternalError(why); }))
        counts.push_back(std::count(stage.begin(), stage.end(), 't'));
    if (counts.empty() || every < 1 || !rest.empty() || counts.front() < every) return false;
    const std::ptrdiff_t again = counts.front() / every;
    if (std::any_of(counts.begin(), counts.end(), [&](std::ptrdiff_t n) { return n / every != again; })) return false;
    s_.recompute = "layers";
    if (every > 1) s_.recompute_layers = static_cast<int>(again);
    const char* const key = "activation_checkpoint.selective_ac_option";
    if (every > 1) matched(key, "plan.recompute_layers", std::to_string(again));
    if (!values_.contains(key))
      s_.assumed.push_back(fmt::format("without {} every second layer is recomputed, {} of each stage", key, again));
    return true;
  }

  void read_checkpointing() {
    const std::string mode = text("activation_checkpoint.mode"),
                      option = text("activation_checkpoint.selective_ac_option");
    if (mode == "full") s_.recompute = "layers";
    if (mode == "selective" && option == "op") s_.recompute = "half";
    if (mode == "none") s_.recompute = "none";
    const bool is_known =
        mode.empty() || mode == "full" || mode == "selective" || mode == "none" || mode == "memory_budget";
    if (!is_known)
      refuse("activation_checkpoint.mode", fmt::format("there is no '{}'", mode),
             "full, selective, memory_budget or none");
    if (mode == "memory_budget") s_.unmodeled.emplace_back("activation_checkpoint.mode = memory_budget");
    if (mode == "selective" && option != "op" && !read_every_layer(option.empty() && !main_ ? "2" : option))
      s_.unmodeled.push_back("activation_checkpoint.mode = selective" +
                             (option.empty() ? "" : " with selective_ac_option = " + option));
    if (!s_.recompute.empty()) matched("activation_checkpoint.mode", "plan.recompute", s_.recompute);
  }

  void sort_others() {
    for (const auto& [key, given] : values_) {
      if (used_.contains(key)) continue;
      const bool no_use =
          kSectionsWithoutUse.contains(key.substr(0, key.find('.'))) || key.starts_with("training.dataset") ||
          key == "training.steps" || key == "training.max_norm" || key == "model.hf_assets_path" ||
          key == "model.tokenizer_path" || key == "training.warmup_steps" || key.starts_with("training.seed");
      (no_use ? s_.without_use : s_.unmodeled).push_back(fmt::format("{} = {}", key, given.value.dump()));
    }
  }

  const std::string& file_;
  const SetupOptions& options_;
  bool main_;  ///< Python or a command line, with the keys since 2026-08-20.
  std::map<std::string, TomlValue> values_;
  std::set<std::string> used_;
  TrainingSetup s_;
  TorchtitanRun run_;
  const TorchtitanFlavor* flavor_ = nullptr;
  std::int64_t replicas_ = 1;
  int stages_ = 0;  ///< Pipeline stages; 0: not given.
  bool knows_shards_ = true;
  int devices_;  ///< GPUs; 0: not known.
};

}  // namespace

TrainingSetup read_torchtitan(const std::string& text, const std::string& file, const SetupOptions& options) {
  return TorchtitanReader(text, file, options).read();
}

}  // namespace stagecraft
