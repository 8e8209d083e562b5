// Writes a planned experiment as the TOML file of torchtitan up to 0.2.2 (2026-02-20), or as a Python file for main of
// 2026-08-21 (b5bcd76), or refuses it with all reasons; `export torchtitan` prints it.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/software.hpp"
#include "sim/interchange/exports/export_support.hpp"
#include "sim/interchange/frameworks.hpp"

namespace stagecraft {
namespace {

struct TorchtitanSchedule {
  const char *name, *theirs;
};

constexpr TorchtitanSchedule kTorchtitanSchedules[] = {{"1f1b", "1F1B"},
                                                       {"gpipe", "GPipe"},
                                                       {"interleaved", "Interleaved1F1B"},
                                                       {"interleaved-zb", "InterleavedZeroBubble"},
                                                       {"looped-bfs", "LoopedBFS"},
                                                       {"zb-v", "ZBVZeroBubble"},
                                                       {"dualpipev", "DualPipeV"}};

class TorchtitanWriter {
 public:
  TorchtitanWriter(const PlannedExperiment& p, bool main)
      : p_(p),
        main_(main),
        facts_(facts_of(p)),
        shape_(p.plan.stages.front().shape),
        degrees_(shape_.degrees),
        ranks_(rank_count(p)),
        refusals_("export torchtitan", p.experiment.plan) {
    const std::string name = p.experiment.schedule.name();
    for (const TorchtitanSchedule& s : kTorchtitanSchedules)
      if (name == s.name) schedule_ = &s;
    async_ = p.experiment.software().name == "torchtitan" && p.experiment.software().overlap[Overlap::Tensor] &&
             degrees_.tensor > 1;
  }

  FrameworkConfiguration write() {
    refusals_.require_usual_order(degrees_);
    refusals_.require_transformer(facts_);
    if (facts_.next_tokens > 0) refusals_.add_of_model("torchtitan has no next-token modules", "next_tokens: 0");
    refusals_.require_even(p_.plan);
    if (ranks_ > 1) refuse_schedule();
    refuse_rules();
    refuse_sharding();
    refuse_groups();
    refuse_others();
    const std::string parts = ranks_ > 1 && facts_.layers > 0 ? model_parts() : "";
    refusals_.throw_if_any();
    std::string text = main_ ? python_text(parts)
                             : "# torchtitan 0.2.2; later releases read no TOML.\n" + model_text() + training_text() +
                                   parallelism_text(parts) + "\n" + recomputation_text() + compile_text();
    add_notes();
    return {std::move(text), std::move(notes_)};
  }

 private:
  bool shards() const { return shape_.sharding == StateSharding::Weights; }

  /// What the rules look at.
  TorchtitanRun run_of() const {
    const Degrees& d = degrees_;
    const bool divides = shape_.sharding != StateSharding::None;  // States alone are refused for themselves.
    return {.main = main_,
            .ranks = ranks_,
            .tensor = d.tensor,
            .context = d.context,
            .expert = d.expert,
            .expert_tensor = d.expert_tensor,
            .replicate = divides ? shape_.shard_copies() : d.replicas,
            .shard = divides ? d.replicas / shape_.shard_copies() : 1,
            .schedule = schedule_ ? schedule_->theirs : "",
            .stages = p_.plan.stage_count(),
            .micro_batches = micro_batch_count(p_),
            .local_batch = ranks_ > 1 ? p_.plan.mini_batch / d.replicas : samples_per_replica(p_),
            .micro_batch = ranks_ > 1 ? samples_per_replica(p_) : 0,
            .global_batch = p_.plan.mini_batch,
            .sequence = facts_.sequence,
            .heads = facts_.heads,
            .key_value_heads = facts_.key_value_heads,
            .experts = facts_.experts,
            .tokens = std::int64_t{samples_per_replica(p_)} * facts_.sequence,
            .recomputation = recomputation(),
            .divides_rows = d.tensor == 1 || d.sequence,
            .compiles_model = async_,
            .async_tensor = async_,
            .disables_graphs = true};
  }

  void refuse_rules() {
    for (const Diagnostic& broken : broken_torchtitan_rules(run_of()))
      refusals_.add(torchtitan_rules(), broken,
                    broken.path == "schedule" ? "stages"
                    : broken.path == "batch"  ? ""
                                              : broken.path);
  }

  void refuse_schedule() {
    const std::string name = p_.experiment.schedule.name();
    if (!schedule_)
      return refusals_.add_of_schedule(fmt::format("torchtitan does not run the schedule '{}'", name),
                                       "1f1b, gpipe, interleaved, interleaved-zb, looped-bfs, zb-v or dualpipev");
    const int count = micro_batch_count(p_);
    const bool rounds = name == "interleaved" || name == "interleaved-zb";
    const std::string group = schedule_option(p_, "group");
    const int theirs = count / std::max(1, count / ranks_);
    if (rounds && !group.empty() && group != std::to_string(theirs))
      refusals_.add(fmt::format("torchtitan takes {} through a chunk before the next, not {}",
                                pluralize(theirs, "micro-batch", "es"), group),
                    "run.schedule without group");
  }

  void refuse_sharding() {
    if (shape_.sharding == StateSharding::Optimizer || shape_.sharding == StateSharding::Gradients)
      refusals_.add("torchtitan divides weights with everything else, or nothing", "shard: weights, or none", "shard");
    if (shape_.shard_within % degrees_.context != 0)
      refusals_.add(fmt::format("torchtitan divides weights over whole context groups of {}", degrees_.context),
                    fmt::format("shard: within a multiple of {}", degrees_.context), "shard");
    if (shape_.sharding != StateSharding::None || main_) return;
    if (degrees_.context > 1)
      refusals_.add("torchtitan divides weights over the context group too", "shard: weights", "shard");
  }

  void refuse_groups() {
    const Degrees& d = degrees_;
    if (!main_ && d.tensor > 1 && !d.sequence)
      refusals_.add("torchtitan's tensor parallelism divides rows too", "group: {sequence: true}", "group");
    if (d.context > 1 && shape_.exchange == ContextExchange::AllToAll)
      refusals_.add("torchtitan's context parallelism exchanges no heads", "context_type: all_gather", "group");
    if (main_ && d.context > 1 && shape_.exchange != ContextExchange::AllGather)
      refusals_.add("torchtitan gathers keys and values since 2026-06-14", "context_type: all_gather", "group");
    if (main_ && d.expert > 1 && d.expert_tensor > 1)
      refusals_.add("torchtitan does not divide experts since 2026-04-30", "expert_tensor: 1", "group");
  }

  void refuse_others() {
    if (shape_.recomputes_all())
      refusals_.add("torchtitan recomputes layer by layer", "recompute: layers", "recompute");
    if (shape_.recomputed_layers > 0 && (main_ || recomputed_every() == 0))
      refusals_.add(main_ ? "torchtitan recomputes all layers of a stage, or none, since 2026-03-23"
                          : "torchtitan recomputes every n-th layer, which is another number of them in some stage",
                    "no recompute_layers", "recompute_layers");
    if (shape_.recomputes_operations())
      refusals_.add("torchtitan does not choose modules, or outputs of norms and activations",
                    "recompute: half, layers or none", "recompute");
    if (shape_.recomputes_attention())
      refusals_.add("torchtitan does not recompute the inside of attention alone", "recompute: half, layers or none",
                    "recompute");
    const std::string_view precision = precision_of(p_);
    if (precision == "fp16" || precision == "tf32" || (precision == "nvfp4" && !main_))
      refusals_.add_of_model(fmt::format("torchtitan does not train in {}", precision), "run.precision: bf16");
  }

  /// Stages by the names of their modules; without them torchtitan counts the embedding and the scores as a layer each.
  std::string model_parts() {
    std::string stages;
    int layer = 0;
    for (const Stage& stage : p_.plan.stages) {
      std::vector<std::string> names;
      const auto add = [&](const char* name) {
        if (names.empty() || names.back() != name) names.emplace_back(name);
      };
      for (const LayerPart part : parts_of_stage(p_, stage)) {
        if (part == LayerPart::Embedding && layer == 0) add("tok_embeddings");
        if (part == LayerPart::Layer) names.push_back(fmt::format("layers.{}", layer++));
        if (part == LayerPart::Norm) add("norm");
        if (part == LayerPart::Head) add(main_ ? "lm_head" : "output");
      }
      if (names.empty())
        refusals_.add("torchtitan computes the loss in the stage of the scores, and a stage has the loss alone",
                      "a plan whose last stage has the scores", "stages");
      stages += fmt::format("{}[\"{}\"]", stages.empty() ? "" : ", ", join(names, "\", \""));
    }
    return stages;
  }

  /// The flavor that has the shape of the model; null where torchtitan has none.
  const TorchtitanFlavor* flavor() const {
    const TransformerFacts& f = facts_;
    for (const TorchtitanFlavor& t : torchtitan_flavors())
      if (t.layers == f.layers && t.hidden == f.hidden && t.heads == f.heads && t.experts == f.experts &&
          (f.latent ? t.key_value_heads == 0 : t.key_value_heads == f.key_value_heads))
        return &t;
    return nullptr;
  }

  std::string model_text() const {
    const std::string_view precision = precision_of(p_);
    std::string text;
    if (const TorchtitanFlavor* t = flavor())
      text += fmt::format("name = \"{}\"\nflavor = \"{}\"\n", t->name, t->flavor);
    if (precision == "fp8" || precision == "mxfp8")
      text += fmt::format("converters = [\"quantize.linear.{}\"]\n", precision == "fp8" ? "float8" : "mx");
    return text.empty() ? "" : "[model]\n" + text + "\n";
  }

  std::string training_text() const {
    return fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n{}",
                       ranks_ > 1 ? p_.plan.mini_batch / degrees_.replicas : samples_per_replica(p_),
                       p_.plan.mini_batch, facts_.sequence,
                       precision_of(p_) == "fp32" ? "mixed_precision_param = \"float32\"\n" : "");
  }

  /// Degrees, schedule and stages by the keys of both eras, as TOML and Python write them: `main` has neither degrees
  /// of expert tensor parallelism nor a size of micro-batches.
  std::vector<std::pair<std::string, std::string>> parallelism(const std::string& parts) const {
    const Degrees& d = degrees_;
    const auto text = [](std::string_view word) { return fmt::format("\"{}\"", word); };
    std::vector<std::pair<std::string, std::string>> keys;
    const auto add = [&](const char* key, const auto& value) { keys.emplace_back(key, fmt::format("{}", value)); };
    add("data_parallel_replicate_degree", shards() ? shape_.shard_copies() : d.replicas);
    add("data_parallel_shard_degree", shards() ? d.replicas / shape_.shard_copies() : 1);
    add("fsdp_reshard_after_forward", text(shape_.reshard ? "always" : "never"));
    add("tensor_parallel_degree", d.tensor);
    add("context_parallel_degree", d.context);
    add("pipeline_parallel_degree", ranks_);
    if (main_ && d.tensor > 1 && !d.sequence) add("enable_sequence_parallel", "False");
    if (!main_ && async_) add("enable_async_tensor_parallel", "true");
    if (!main_ && d.context > 1)
      add("context_parallel_rotate_method",
          text(shape_.exchange == ContextExchange::AllGather ? "allgather" : "alltoall"));
    if (facts_.experts > 0) add("expert_parallel_degree", d.expert);
    if (!main_ && facts_.experts > 0) add("expert_tensor_parallel_degree", d.expert_tensor);
    if (!main_ && d.expert > 1 && shape_.dispatcher == ExpertDispatch::PerNode)
      add("expert_parallel_comm_backend", text("deepep"));
    if (ranks_ > 1) add("pipeline_parallel_schedule", text(schedule_->theirs));
    if (ranks_ > 1 && main_) add("num_pp_microbatches", micro_batch_count(p_));
    if (ranks_ > 1 && !main_) add("pipeline_parallel_microbatch_size", samples_per_replica(p_));
    if (!parts.empty()) add("module_fqns_per_model_part", "[" + parts + "]");
    return keys;
  }

  std::string parallelism_text(const std::string& parts) const {
    std::string text = "\n[parallelism]\n";
    for (const auto& [key, value] : parallelism(parts)) text += fmt::format("{} = {}\n", key, value);
    return text;
  }

  /// The n for which every n-th layer of each stage is as many as the plan recomputes; 0 without.
  int recomputed_every() const {
    std::vector<int> counts;
    for (const Stage& stage : p_.plan.stages) {
      const std::vector<LayerPart> parts = parts_of_stage(p_, stage);
      counts.push_back(static_cast<int>(std::count(parts.begin(), parts.end(), LayerPart::Layer)));
    }
    for (int every = 1; every <= counts.front(); ++every)
      if (std::all_of(counts.begin(), counts.end(), [&](int n) { return n / every == shape_.recomputed_layers; }))
        return every;
    return 0;
  }

  const char* recomputation() const {
    if (shape_.recomputes_half() || shape_.recomputed_layers > 0) return "selective";
    return shape_.recomputes_layers() ? "full" : "none";
  }

  std::string recomputation_text() const {
    const std::string option = shape_.recomputed_layers > 0 ? std::to_string(recomputed_every())
                               : shape_.recomputes_half()   ? "op"
                                                            : "";
    return fmt::format("[activation_checkpoint]\nmode = \"{}\"\n{}", recomputation(),
                       option.empty() ? "" : fmt::format("selective_ac_option = \"{}\"\n", option));
  }

  std::string compile_text() const {
    return async_ ? "\n[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n" : "";
  }

  /// Converters of number formats, "Float8LinearConverter", and their arguments.
  std::vector<std::pair<std::string, std::string>> converters() const {
    const std::string_view precision = precision_of(p_);
    const std::string family = precision == "fp8" ? "Float8" : precision == "mxfp8" ? "MXFP8" : "NVFP4";
    if (precision != "fp8" && precision != "mxfp8" && precision != "nvfp4") return {};
    const std::string compiled =
        fmt::format("model_compile_enabled={}", async_ || precision != "fp8" ? "True" : "False");
    const char* const layers = precision == "fp8" ? "filter_fqns=[\"lm_head\", \"router.gate\"], "
                                                  : "fqns=[\"attention\", \"shared_experts\", \"feed_forward\"], ";
    std::vector<std::pair<std::string, std::string>> list{{family + "LinearConverter", layers + compiled}};
    if (facts_.experts > 0 && precision != "nvfp4") list.emplace_back(family + "GroupedExpertsConverter", compiled);
    return list;
  }

  std::string imports_of_python() const {
    std::vector<std::string> formats;
    for (const auto& [name, arguments] : converters()) formats.push_back(name);
    std::sort(formats.begin(), formats.end());
    std::string text =
        formats.empty() ? "" : fmt::format("from torchtitan.components.quantization import {}\n", join(formats, ", "));
    text += "from torchtitan.config import CompileConfig, ParallelismConfig\n";
    if (shape_.recomputes_layers() || shape_.recomputes_half())
      text += fmt::format("from torchtitan.distributed.activation_checkpoint import {}\n",
                          shape_.recomputes_layers() ? "FullAC" : "SelectiveAC");
    if (const TorchtitanFlavor* t = flavor())
      text += fmt::format(
          "from torchtitan.models.{0} import model_registry\nfrom torchtitan.models.{0}.config_registry import {1}\n",
          t->name, t->config);
    return text + "from torchtitan.trainer import Trainer\n";
  }

  std::string model_of_python() const {
    const TorchtitanFlavor* t = flavor();
    if (!t) return "    config = Trainer.Config()  # Give it a model_spec.\n";
    std::string arguments = fmt::format("\"{}\"", t->flavor), formats;
    if (degrees_.expert > 1 && shape_.dispatcher == ExpertDispatch::PerNode)
      arguments += ", moe_comm_backend=\"deepep\"";
    for (const auto& [name, options] : converters())
      formats += fmt::format("            {}.Config({}),\n", name, options);
    if (!formats.empty()) arguments += fmt::format(",\n        converters=[\n{}        ],\n    ", formats);
    return fmt::format(
        "    config = {}()  # Data, loss and optimizer are its own.\n    config.model_spec = "
        "model_registry({})\n",
        t->config, arguments);
  }

  std::string python_text(const std::string& parts) const {
    std::string text =
        "# torchtitan, main branch of 2026-08-21 (b5bcd76): --module NAME_OF_THIS_FILE --config planned\n" +
        imports_of_python() + "\n\ndef planned() -> Trainer.Config:\n" + model_of_python();
    const auto training = [&](const char* key, const auto& value) {
      text += fmt::format("    config.training.{} = {}\n", key, value);
    };
    training("num_tokens_per_microbatch_per_dp_rank", std::int64_t{samples_per_replica(p_)} * facts_.sequence);
    training("num_tokens_per_train_step", std::int64_t{p_.plan.mini_batch} * facts_.sequence);
    training("max_context_length", facts_.sequence);
    if (precision_of(p_) == "fp32") training("mixed_precision_param", "\"float32\"");
    const bool keeps_graphs = ranks_ == 1 && degrees_.expert == 1;
    training("disable_cuda_graphs", keeps_graphs ? "False" : "True");
    text += "    config.parallelism = ParallelismConfig(\n";
    for (const auto& [key, value] : parallelism(parts)) text += fmt::format("        {}={},\n", key, value);
    text += "    )\n";
    const std::string mode = shape_.recomputes_layers() ? "FullAC.Config()"
                             : shape_.recomputes_half() ? "SelectiveAC.Config()"
                                                        : "None";
    text += fmt::format("    config.activation_checkpoint = {}\n", mode);
    const std::string_view precision = precision_of(p_);
    const bool compiles = async_ || precision == "mxfp8" || precision == "nvfp4";
    text += fmt::format("    config.compile = CompileConfig({}{})\n",
                        compiles ? "enable=True, components=[\"model\", \"loss\"]" : "",
                        async_ ? ", enable_async_tensor_parallel=True" : "");
    return text + "    return config\n";
  }

  void add_notes() {
    const auto not_written = [&](const std::string& what) { notes_.push_back("not written: " + what); };
    if (p_.experiment.run.buckets)
      not_written("run.gradient_buckets: torchtitan sums gradients layer by layer, or in buckets of its own");
    if (p_.experiment.plan.offload) not_written("plan.offload, which torchtitan does not have");
    if (shape_.overlaps_shared) not_written("plan.group.shared_overlap");
    if (degrees_.expert > 1 && shape_.dispatcher == ExpertDispatch::AllGather)
      not_written("plan.group.dispatcher: allgather; torchtitan exchanges rows by all-to-alls");
    if (!flavor()) not_written("the model, because no flavor of torchtitan that is known here has its shape");
    if (facts_.window > 0) not_written("sliding windows of attention, which the flavor of the model has");
    if (p_.experiment.source)
      for (const std::string& fact : replaced_facts(*p_.experiment.source)) not_written(fact);
    const SoftwareStack& stack = p_.experiment.software();
    if (stack.prices && !stack.name.starts_with("torchtitan"))
      not_written(fmt::format("software: {}; with these options it is software: torchtitan", stack.name));
    if (!main_ && !shards() && degrees_.group() * ranks_ > 1 && precision_of(p_) != "fp32")
      notes_.emplace_back(
          "without divided weights and with other parallelism torchtitan computes in fp32, whatever "
          "mixed_precision_param is");
  }

  const PlannedExperiment& p_;
  const bool main_;  ///< A Python file.
  TransformerFacts facts_;
  const StageShape& shape_;
  const Degrees& degrees_;
  int ranks_;
  const TorchtitanSchedule* schedule_ = nullptr;  ///< Null where torchtitan has no such schedule.
  bool async_ = false;
  ExportRefusals refusals_;
  std::vector<std::string> notes_;
};

}  // namespace

FrameworkConfiguration torchtitan_config(const PlannedExperiment& p) { return TorchtitanWriter(p, false).write(); }
FrameworkConfiguration torchtitan_function(const PlannedExperiment& p) { return TorchtitanWriter(p, true).write(); }

}  // namespace stagecraft
