// Writes a planned experiment as arguments of Megatron-LM 0.20, or refuses it with all reasons; `export megatron`
// prints them. The importer, which knows the rules of Megatron-LM, reads them again, so that nothing is written that it
// refuses.

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/exports/export_support.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/training_setup.hpp"

namespace stagecraft {
namespace {

/// "Et*3|t*2|t*2L" for these layers of each stage, and "t*2mL" with next-token modules of each.
std::string layout_text(const std::vector<int>& layers, const std::vector<int>& modules) {
  std::string text = "E";
  for (std::size_t s = 0; s < layers.size(); ++s) {
    text += s > 0 ? "|" : "";
    text += layers[s] > 1 ? fmt::format("t*{}", layers[s]) : layers[s] == 1 ? "t" : "";
    text += std::string(modules[s], 'm');
  }
  return text + "L";
}

class MegatronWriter {
 public:
  explicit MegatronWriter(const PlannedExperiment& p)
      : p_(p),
        facts_(facts_of(p)),
        shape_(p.plan.stages.front().shape),
        degrees_(shape_.degrees),
        ranks_(rank_count(p)),
        chunks_(p.plan.stage_count() / ranks_),
        schedule_(p.experiment.schedule.name()),
        stack_(p.experiment.software()),
        refusals_("export megatron", p.experiment.plan) {}

  FrameworkConfiguration write() {
    find_layers();
    refuse();
    write_model();
    write_experts();
    write_groups();
    write_pipeline();
    write_batch();
    write_state();
    write_offload();
    write_overlap();
    write_recomputation();
    write_precision();
    read_again();
    add_notes();
    return {std::move(text_), std::move(notes_)};
  }

 private:
  void add(const std::string& option) { text_ += "--" + option + "\n"; }
  bool shares_data() const { return degrees_.replicas * degrees_.context > 1; }

  /// Transformer layers of each stage. The embedding has to be before the first of them, and norm, scores and loss on
  /// the last stage, because Megatron-LM has them there.
  void find_layers() {
    const StageId last{p_.plan.stages.size() - 1};
    for (const StageId s : p_.plan.stages.ids()) {
      int count = 0;
      std::set<std::string> modules;
      for (const LayerId id : p_.plan.stage(s).shape.layers)
        if (const Layer& layer = p_.model().layers[id]; part_of(layer) == LayerPart::NextToken)
          modules.insert(layer.name.substr(0, layer.name.find('.')));
      modules_.push_back(static_cast<int>(modules.size()));
      for (const LayerPart part : parts_of_stage(p_, p_.plan.stage(s))) {
        count += part == LayerPart::Layer;
        const bool at_end = part == LayerPart::Norm || part == LayerPart::Head || part == LayerPart::Loss;
        is_layout_ = is_layout_ && (part != LayerPart::Embedding || s == StageId{0}) && (!at_end || s == last);
      }
      layers_.push_back(count);
    }
  }

  void refuse() {
    refusals_.require_transformer(facts_);
    refusals_.require_even(p_.plan);
    refusals_.throw_if_any();  // Nothing can be written then.
    if (facts_.layers > 0 && !is_layout_)
      refusals_.add(
          "Megatron-LM has the embedding in the first stage, and the last norm, the scores and the loss in the last",
          fmt::format("plan.planner: layout, plan.layout: \"{}\"", layout_text(layers_, modules_)));
    const std::string order = to_text(degrees_.order);
    if (order != "tp-cp-ep-dp-pp" && order != "tp-cp-ep-pp-dp")
      refusals_.add(fmt::format("Megatron-LM's arguments do not say the order {}", order),
                    "order: tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp", "group");
    if (schedule_ != "1f1b" && schedule_ != "interleaved" && ranks_ > 1)
      refusals_.add_of_schedule(fmt::format("Megatron-LM does not run the schedule '{}'", schedule_),
                                "run.schedule: 1f1b, or interleaved");
    if (ranks_ == 1 && chunks_ > 1)
      refusals_.add("Megatron-LM does not interleave the stages of a single rank", "plan.stages: 1, or more ranks",
                    "stages");
    if (shape_.recomputes_all())
      refusals_.add("Megatron-LM recomputes layer by layer, not a whole stage before its backward", "recompute: layers",
                    "recompute");
    if (shape_.recomputes_half())
      refusals_.add("Megatron-LM does not recompute half of a layer", "recompute: layers, outputs or none",
                    "recompute");
    if (!p_.experiment.schedule.flushes()) refusals_.add("Megatron-LM flushes the pipeline", "weights: flush");
    if (stack_.hides(Overlap::Tensor) > 0 && degrees_.tensor > 1 && !degrees_.sequence)
      refusals_.add(fmt::format("software: {} hides collectives of the tensor group, and Megatron-LM refuses "
                                "--tp-comm-overlap without sequence parallelism (AssertionError)",
                                stack_.name),
                    "group: {sequence: true}, or software.overlap.tensor: false", "group");
  }

  void write_model() {
    const TransformerFacts& f = facts_;
    add(fmt::format("num-layers {}", f.layers));
    add(fmt::format("hidden-size {}", f.hidden));
    if (f.feed_forward > 0) add(fmt::format("ffn-hidden-size {}", f.feed_forward));
    add(fmt::format("num-attention-heads {}", f.heads));
    if (f.latent) {
      write_latent_attention();
    } else {
      if (f.head_width * f.heads != f.hidden) add(fmt::format("kv-channels {}", f.head_width));
      if (f.key_value_heads != f.heads) {
        add("group-query-attention");
        add(fmt::format("num-query-groups {}", f.key_value_heads));
      }
      if (f.query_norm) add("qk-layernorm");
    }
    if (!f.fused_attention) add("attention-backend unfused");
    if (f.window > 0) add(fmt::format("window-size {},0", f.window - 1));
    if (f.full_every > 0) add(fmt::format("window-attn-skip-freq {}", f.full_every));
    if (f.sinks) add("softmax-type learnable");
    add(fmt::format("seq-length {}", f.sequence));
    add(fmt::format("max-position-embeddings {}", f.sequence));
    write_vocabulary();
    if (f.gated) add("swiglu");
    if (f.rms) add("normalization RMSNorm");
    if (f.rotary) add("position-embedding-type rope");
    if (!f.rotary && !f.positions) add("position-embedding-type none");
    if (!f.bias) add("disable-bias-linear");
    if (!f.bias && f.query_bias) add("add-qkv-bias");
    if (f.next_tokens > 0) add(fmt::format("mtp-num-layers {}", f.next_tokens));
    if (stack_.prices && !stack_.dropout) {
      add("hidden-dropout 0");
      add("attention-dropout 0");
    }
    if (!f.tied) add("untie-embeddings-and-output-weights");
  }

  /// Norms of the short vectors are part of latent attention here. Megatron-LM wants the width of values twice.
  void write_latent_attention() {
    const TransformerFacts& f = facts_;
    add("multi-latent-attention");
    if (f.query_rank > 0) add(fmt::format("q-lora-rank {}", f.query_rank));
    add(fmt::format("kv-lora-rank {}", f.key_value_rank));
    add(fmt::format("qk-head-dim {}", f.nope_width));
    add(fmt::format("qk-pos-emb-head-dim {}", f.rope_width));
    add(fmt::format("v-head-dim {}", f.value_width));
    add(fmt::format("kv-channels {}", f.value_width));
    add("qk-layernorm");
  }

  /// Megatron-LM pads to a multiple of 128 x tensor. Where that is another vocabulary, the unit is 1.
  void write_vocabulary() {
    const int tensor = degrees_.tensor;
    add(fmt::format("vocab-size {}", facts_.vocabulary));
    if (facts_.vocabulary % (128 * tensor) == 0) return;
    add("make-vocab-size-divisible-by 1");
    if (const int padded = (facts_.vocabulary + tensor - 1) / tensor * tensor; padded != facts_.vocabulary)
      notes_.push_back(fmt::format("Megatron-LM pads the vocabulary of {} to {}, a multiple of tensor {}",
                                   facts_.vocabulary, padded, tensor));
  }

  void write_experts() {
    const TransformerFacts& f = facts_;
    if (f.experts == 0) return;
    add(fmt::format("num-experts {}", f.experts));
    add(fmt::format("moe-router-topk {}", f.active));
    if (f.active == 1) add("moe-router-pre-softmax");
    add(fmt::format("moe-ffn-hidden-size {}", f.expert_width));
    if (f.shared_width > 0) add(fmt::format("moe-shared-expert-intermediate-size {}", f.shared_width));
    if (f.dense_layers > 0)
      add(fmt::format("moe-layer-freq \"([0]*{}+[1]*{})\"", f.dense_layers, f.layers - f.dense_layers));
    if (f.expert_groups > 0) {
      add(fmt::format("moe-router-num-groups {}", f.expert_groups));
      add(fmt::format("moe-router-group-topk {}", f.expert_nodes));
    }
    if (f.capacity > 0) {
      add(fmt::format("moe-expert-capacity-factor {}", shortest(f.capacity)));
      add("moe-pad-expert-input-to-capacity");
    }
    add("moe-grouped-gemm");
    constexpr const char* kTypes[] = {"alltoall", "flex", "allgather"};
    add(fmt::format("moe-token-dispatcher-type {}", kTypes[static_cast<int>(shape_.dispatcher)]));
    if (shape_.dispatcher == ExpertDispatch::PerNode) add("moe-flex-dispatcher-backend deepep");
    if (shape_.overlaps_shared) add("moe-shared-expert-overlap");
  }

  void write_groups() {
    const Degrees& d = degrees_;
    add(fmt::format("tensor-model-parallel-size {}", d.tensor));
    if (d.sequence && d.tensor > 1) add("sequence-parallel");
    add(fmt::format("pipeline-model-parallel-size {}", ranks_));
    if (to_text(d.order) == "tp-cp-ep-pp-dp") add("use-tp-pp-dp-mapping");
    if (d.context > 1) {
      constexpr const char* kTypes[] = {"p2p", "all_gather", "a2a"};
      add(fmt::format("context-parallel-size {}", d.context));
      add(fmt::format("cp-comm-type {}", kTypes[static_cast<int>(shape_.exchange)]));
    }
    if (d.expert > 1) add(fmt::format("expert-model-parallel-size {}", d.expert));
    if (facts_.experts > 0) add(fmt::format("expert-tensor-parallel-size {}", d.expert_tensor));
  }

  /// Without a layout Megatron-LM divides the layers evenly.
  void write_pipeline() {
    const bool even = std::all_of(layers_.begin(), layers_.end(), [&](int n) { return n == layers_.front(); });
    if (ranks_ > 1 && (!even || facts_.next_tokens > 0)) {
      add(fmt::format("pipeline-model-parallel-layout \"{}\"", layout_text(layers_, modules_)));
    } else if (chunks_ > 1) {
      add(fmt::format("num-virtual-stages-per-pipeline-rank {}", chunks_));
    }
    const std::string group = schedule_option(p_, "group");
    if (chunks_ > 1 && !group.empty() && group != std::to_string(ranks_))
      add("microbatch-group-size-per-virtual-pipeline-stage " + group);
  }

  void write_batch() {
    add(fmt::format("micro-batch-size {}", samples_per_replica(p_)));
    add(fmt::format("global-batch-size {}", p_.plan.mini_batch));
  }

  void write_state() {
    const StateSharding sharding = shape_.sharding;
    if (sharding == StateSharding::Optimizer) add("use-distributed-optimizer");
    if (sharding > StateSharding::Optimizer) {
      add("use-megatron-fsdp");
      add(fmt::format("data-parallel-sharding-strategy {}",
                      sharding == StateSharding::Gradients ? "optim_grads" : "optim_grads_params"));
      add("ckpt-format fsdp_dtensor");
    }
    if (shape_.shard_copies() > 1) add(fmt::format("num-distributed-optimizer-instances {}", shape_.shard_copies()));
  }

  /// Whether the scenario says what stages move.
  bool says_what_moves() const {
    const Offload& offload = *p_.experiment.plan.offload;
    return !offload.selective && offload.chunks == 0;
  }

  /// Whole layers, without a pipeline and recomputation; nothing where Megatron-LM does not say what the plan does.
  std::optional<int> offloaded_layers() const {
    const auto& offload = p_.experiment.plan.offload;
    if (!offload || !(offload->activations > 0) || !says_what_moves() || !offload->modules.empty()) return {};
    if (offload->less.value > 0) return {};
    const double layers = offload->activations * facts_.layers, whole = std::round(layers);
    const bool is_possible = ranks_ * chunks_ == 1 && shape_.recomputation == Recomputation::None;
    if (!is_possible || std::abs(layers - whole) > 1e-6 || whole < 1 || whole >= facts_.layers) return {};
    return static_cast<int>(whole);
  }

  bool offloads_modules() const {
    const Offload& offload = *p_.experiment.plan.offload;
    return offload.moves_stashes() && says_what_moves() && !offload.modules.empty();
  }

  void write_offload() {
    const auto& offload = p_.experiment.plan.offload;
    if (!offload) return;
    if (const std::optional<int> layers = offloaded_layers()) add(fmt::format("cpu-offloading-num-layers {}", *layers));
    if (offloads_modules()) {
      add("fine-grained-activation-offloading");
      add("offload-modules " + join(offload->modules, " "));
      if (std::find(offload->modules.begin(), offload->modules.end(), "fused_group_mlp") != offload->modules.end())
        add("use-transformer-engine-op-fuser");
      if (offload->activations < 1) add("activation-offload-fraction " + shortest(offload->activations));
      if (offload->less.value > 0) add(fmt::format("delta-offload-bytes-across-pp-ranks {:.0f}", offload->less.value));
    }
    if (!(offload->optimizer > 0)) return;
    add("optimizer-cpu-offload");
    if (offload->optimizer < 1) add(fmt::format("optimizer-offload-fraction {}", shortest(offload->optimizer)));
    add("use-precision-aware-optimizer");
    if (offload->beside) add("overlap-cpu-optimizer-d2h-h2d");
  }

  /// What the stack runs next to computation, and buckets of gradients.
  void write_overlap() {
    const StateSharding sharding = shape_.sharding;
    const auto& buckets = p_.experiment.run.buckets;
    const bool hides_sums = stack_.hides(Overlap::Gradients) > 0;
    const bool has_buckets = buckets && sharding <= StateSharding::Optimizer;
    if (stack_.hides(Overlap::Tensor) > 0 && degrees_.tensor > 1) add("tp-comm-overlap");
    if (shares_data() && (hides_sums || has_buckets)) add("overlap-grad-reduce");
    if (shares_data() && hides_sums && stack_.hides(Overlap::Weights) > 0 && sharding >= StateSharding::Optimizer)
      add("overlap-param-gather");
    if (shares_data() && has_buckets && buckets->gradients.value > 0)
      add(fmt::format("ddp-bucket-size {:.0f}",
                      buckets->gradients.value / (stack_.prices ? stack_.gradient_bytes : 4)));
    const bool pairs = schedule_option(p_, "overlap_moe") == "true";
    const bool overlaps_experts = degrees_.expert > 1 && (pairs || stack_.hides(Overlap::Experts) > 0);
    if (overlaps_experts) add("overlap-moe-expert-parallel-comm");
    if (overlaps_experts && stack_.overlap[Overlap::WeightGradients]) add("delay-wgrad-compute");
    if (chunks_ > 1 && stack_.name == "megatron-core" && !stack_.overlap[Overlap::Messages])
      add("no-overlap-p2p-communication");
    if (stack_.prices && stack_.fuses_loss()) add("cross-entropy-loss-fusion");
  }

  /// Megatron-LM has no word for `outputs`: norms, activations of experts and up-projections are most of it.
  Recomputation modules() const {
    if (!shape_.recomputes_outputs()) return shape_.recomputation;
    Recomputation parts = Recomputation::Norms;
    if (facts_.experts > 0) parts = parts | Recomputation::ExpertActivations;
    if (facts_.latent) parts = parts | Recomputation::UpProjections;
    return parts;
  }

  void write_recomputation() {
    if (recomputes_by_modules(shape_.recomputation)) {
      std::string names;
      for (const std::string& name : recomputation_modules())
        if (recomputes(modules(), *recomputation_module(name))) names += " " + name;
      add("recompute-granularity selective");
      if (names != " core_attn") add("recompute-modules" + names);
    }
    if (shape_.recomputes_layers()) {
      const int first = shape_.recomputed_layers;
      add("recompute-granularity full");
      add(fmt::format("recompute-method {}", first > 0 ? "block" : "uniform"));
      add(fmt::format("recompute-num-layers {}", std::max(1, first)));
    }
  }

  void write_precision() {
    const std::string_view precision = precision_of(p_);
    if (precision == "fp16") add("fp16");
    if (precision == "fp16" && (!stack_.prices || stack_.gradient_bytes >= 4))
      add("accumulate-allreduce-grads-in-fp32");
    if (precision == "tf32") notes_.emplace_back("run.precision: tf32; Megatron-LM computes in fp32");
    if (precision != "fp16" && precision != "fp32" && precision != "tf32") {
      add("bf16");
      if (stack_.prices && stack_.gradient_bytes < 4) add("grad-reduce-in-bf16");
    }
    if (precision == "fp8") add("fp8-format hybrid"), add("fp8-recipe tensorwise");
    if (precision == "mxfp8") add("fp8-format e4m3"), add("fp8-recipe mxfp8");
    if (precision == "nvfp4") add("fp4-format e2m1"), add("fp4-recipe nvfp4");
    const bool is_fp8 = precision == "fp8" || precision == "mxfp8";
    if (is_fp8 && stack_.gathered_bytes < 2 && shape_.sharding != StateSharding::None) add("fp8-param-gather");
  }

  /// The release of Megatron-LM that the scenario names; empty: the newest.
  std::string release() const { return stack_.name == "megatron-core" ? std::string(stack_.release) : ""; }

  /// InputError with the rules of Megatron-LM that the arguments break.
  void read_again() {
    const int devices = degrees_.devices() * ranks_;
    try {
      const TrainingSetup setup = read_megatron(text_, "", {.devices = devices, .release = release()});
      of_other_releases_ = setup.of_other_releases;
      imported_ = stack_of(setup);
      software_ = software_text(setup);
    } catch (const InputError& error) {
      for (const Diagnostic& problem : error.problems()) {
        Diagnostic rule = problem;
        if (rule.code == "tensor-overlap") continue;  // refuse() has it, with the fields of the scenario.
        if (chunks_ > 1 && (rule.code == "remainder" || rule.code == "few-micro-batches")) rule.help += group_help();
        refusals_.add(std::move(rule));
      }
    }
    refusals_.throw_if_any();
  }

  /// Another group of micro-batches, which the order has here where none is written.
  std::string group_help() const {
    const int count = micro_batch_count(p_);
    for (int group = ranks_; group <= count; ++group)
      if (count % group == 0 || count % group >= ranks_) return fmt::format("; or run.schedule.group: {}", group);
    return "";
  }

  void add_notes() {
    const auto not_written = [&](const std::string& what) { notes_.push_back("not written: " + what); };
    for (const Diagnostic& option : of_other_releases_)
      notes_.push_back(fmt::format("{}: {}; {}", option.path, option.message, option.help));
    if (shares_data() && stack_.hides(Overlap::Gradients) > 0 && !p_.experiment.run.buckets &&
        shape_.sharding <= StateSharding::Optimizer)
      notes_.emplace_back("--overlap-grad-reduce sums gradients in buckets, as run.gradient_buckets: software does");
    if (p_.experiment.run.buckets && shape_.sharding > StateSharding::Optimizer)
      not_written("run.gradient_buckets, because FSDP sums gradients layer by layer");
    if (const auto& offload = p_.experiment.plan.offload; offload && offload->moves_stashes()) {
      if (!offloaded_layers() && !offloads_modules())
        not_written(
            "plan.offload.activations, which is neither a number of layers nor one share of `modules` in all stages");
      else if (offload->late && ranks_ > 1)
        not_written("plan.offload.late, as no forward of Megatron-LM waits");
    }
    if (facts_.expert_nodes > 0 && facts_.expert_groups == 0)
      not_written("model.experts.nodes, as the model does not say in how many groups the experts are");
    if (facts_.experts > 0)
      notes_.emplace_back(
          "routers score by softmax, as in Megatron-LM without --moe-router-score-function, and have no bias; add the "
          "options of your model's router");
    if (shape_.recomputes_outputs() && has_other_outputs())
      not_written("activations of dense layers and norms of heads, which plan.recompute: outputs computes again");
    if (facts_.output_norms) not_written("norms of the outputs of attention and dense layers");
    if (shape_.recomputation == Recomputation::Selective && facts_.fused_attention)
      notes_.emplace_back("attention is fused, so plan.recompute: selective frees nothing; import leaves it out");
    if (schedule_option(p_, "overlap_moe") == "true")
      notes_.emplace_back(
          "import takes --overlap-moe-expert-parallel-comm as software.overlap.experts, not as "
          "run.schedule.overlap_moe");
    if (stack_.prices && !is_alike())
      notes_.push_back(fmt::format(
          "not written: software: {}, for which Megatron-LM has no arguments; with these it is software: {}",
          stack_.name, software_));
    if (stack_.graphs != imported_.graphs)
      not_written("software.graphs, for which Megatron-LM has --cuda-graph-impl, which import does not read");
    if (shape_.sharding > StateSharding::Optimizer)
      notes_.emplace_back("leave CUDA_DEVICE_MAX_CONNECTIONS unset, because FSDP refuses 1");
    else if (degrees_.group() > 1)
      notes_.emplace_back(
          "set CUDA_DEVICE_MAX_CONNECTIONS=1, without which tensor and context parallelism is refused "
          "on GPUs before Blackwell");
  }

  /// Whether layers have outputs that are recomputed here, and not by the modules of Megatron-LM.
  bool has_other_outputs() const {
    return facts_.experts == 0 || facts_.dense_layers > 0 || facts_.shared_width > 0 || facts_.query_norm;
  }

  /// Whether the stack that import takes hides what the stack of the scenario does. Buckets hide sums of gradients
  /// whatever the stack is.
  bool is_alike() const {
    const SoftwareStack &other = imported_, &stack = stack_;
    const auto hides_alike = [&](Overlap f) { return other.hides(f) == stack.hides(f); };
    if (degrees_.tensor > 1 && (!hides_alike(Overlap::Tensor) || other.hides_regather != stack.hides_regather))
      return false;
    if (degrees_.expert > 1 && !hides_alike(Overlap::Experts)) return false;
    const bool in_buckets = p_.experiment.run.buckets && shape_.sharding == StateSharding::None;
    if (shares_data() && !in_buckets && !hides_alike(Overlap::Gradients)) return false;
    if (shares_data() && shape_.sharding != StateSharding::None && !hides_alike(Overlap::Weights)) return false;
    const bool in_pass = shape_.sharding > StateSharding::Optimizer;
    if (in_pass && other.overlap[Overlap::Weights] != stack.overlap[Overlap::Weights]) return false;
    const bool gathers_messages = ranks_ > 1 && degrees_.tensor > 1 && !degrees_.sequence;
    if (gathers_messages && other.overlap[Overlap::Messages] != stack.overlap[Overlap::Messages]) return false;
    return other.fused_attention == stack.fused_attention && other.attention_kernel == stack.attention_kernel &&
           other.dropout == stack.dropout && other.loss_forward_traffic == stack.loss_forward_traffic &&
           other.gradient_bytes == stack.gradient_bytes &&
           (shape_.sharding == StateSharding::None || other.gathered_bytes == stack.gathered_bytes);
  }

  const PlannedExperiment& p_;
  TransformerFacts facts_;
  const StageShape& shape_;
  const Degrees& degrees_;
  int ranks_, chunks_;
  std::string schedule_;
  const SoftwareStack& stack_;
  ExportRefusals refusals_;
  std::vector<int> layers_, modules_;  ///< Transformer layers and next-token modules of each stage.
  bool is_layout_ = true;              ///< A layout of Megatron-LM can say which stage has what.
  std::string text_, software_;        ///< What is written, and the software that its import has.
  SoftwareStack imported_;
  std::vector<Diagnostic> of_other_releases_;  ///< Options that the release does not have.
  std::vector<std::string> notes_;
};

}  // namespace

FrameworkConfiguration megatron_arguments(const PlannedExperiment& p) { return MegatronWriter(p).write(); }

}  // namespace stagecraft
