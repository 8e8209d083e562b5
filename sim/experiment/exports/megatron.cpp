#include "sim/experiment/frameworks.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The shape of a transformer, from its operations; zero where there are none of a kind.
struct TransformerFacts {
  int layers = 0, hidden = 0, heads = 0, key_value_heads = 0, head_width = 0, feed_forward = 0, sequence = 0,
      vocabulary = 0;
  int experts = 0, active = 0, expert_width = 0;
  bool gated = false, rms = false, rotary = false, tied = true, bias = false, latent = false;
  bool query_bias = false, query_norm = false;
  bool next_tokens = false, shared = false;  ///< Next-token modules; layers with experts and dense products.
};

/// Whether the operation makes queries, keys or values.
bool before_attention(const std::vector<Operation>& ops, std::size_t i) {
  return std::any_of(ops.begin() + static_cast<std::ptrdiff_t>(i), ops.end(),
                     [](const Operation& op) { return op.kind == OperationKind::Attention; });
}

TransformerFacts facts_of(const ModelGraph& model) {
  TransformerFacts f;
  bool owns_head = false;
  for (const Layer& layer : model.layers) {
    const std::vector<Operation>& ops = layer.operations;
    f.next_tokens = f.next_tokens || layer.name.starts_with("mtp");
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operation& op = ops[i];
      switch (op.kind) {
        case OperationKind::Embedding:
          f.vocabulary = op.inner, f.hidden = op.columns, f.sequence = op.rows;
          break;
        case OperationKind::Attention: {
          const HeadShape heads = head_shape(op);
          ++f.layers;
          f.heads = heads.heads, f.key_value_heads = heads.key_value_heads, f.head_width = heads.value;
          f.latent = f.latent || op.inputs.size() > 1;
          break;
        }
        case OperationKind::GatedSilu:
          f.gated = true;
          break;
        case OperationKind::Linear:
          (before_attention(ops, i) ? f.query_bias : f.bias) |= op.bias && op.division != Division::Vocabulary;
          if (op.division == Division::Vocabulary) owns_head = layer.tie.empty();
          if (op.division == Division::Row && i > 0 && ops[i - 1].kind != OperationKind::Attention)
            f.feed_forward = op.inner;
          break;
        case OperationKind::HeadNorm:
          f.query_norm = true;
          break;
        case OperationKind::RmsNorm:
          f.rms = true;
          break;
        case OperationKind::Rotary:
          f.rotary = true;
          break;
        case OperationKind::GroupedLinear:
          f.experts = op.experts, f.active = op.active;
          if (op.within_expert == Division::Row) f.expert_width = op.inner;
          break;
        default:
          break;
      }
    }
  }
  f.tied = !owns_head;
  f.shared = f.experts > 0 && f.feed_forward > 0;
  return f;
}

/// Transformer layers of each stage.
std::vector<int> layers_of(const PlannedExperiment& p) {
  std::vector<int> counts;
  for (const Stage& stage : p.plan.stages) {
    int count = 0;
    for (const LayerId id : stage.shape.layers)
      for (const Operation& op : p.model().layers[id].operations) count += op.kind == OperationKind::Attention;
    counts.push_back(count);
  }
  return counts;
}

/// Refuses what no framework of these takes, and what all of them need.
class Refusals {
 public:
  Refusals(std::string framework, const PlanSpec& plan) : framework_(std::move(framework)), plan_(plan) {}
  /// `field` of the plan is the reason; without one, something else is.
  void add(std::string why, std::string help, std::string_view field = {}) {
    const Where where = field.empty() ? Where{} : plan_.where(field);
    problems_.push_back({where, framework_, std::move(why), std::move(help), "framework"});
  }
  void require_usual_order(const Degrees& d) {
    if (d.order.axes != RankOrder{}.axes)
      add(fmt::format("{} numbers devices in one order alone, not as {}", framework_.substr(framework_.find(' ') + 1),
                      to_text(d.order)),
          "order: tp-cp-ep-dp-pp", "group");
  }
  void require_transformer(const TransformerFacts& f) {
    if (f.layers == 0 || f.hidden == 0)
      add("the model is no transformer with an embedding", "a model of the builder transformer");
    if (f.next_tokens) add("arguments of next-token modules are not written", "next_tokens: 0");
    if (f.shared)
      add("arguments of shared experts and of first dense layers are not written", "a model whose layers are alike");
    if (f.latent) add("arguments of latent attention are not written", "a model without latent attention");
  }
  void require_even(const PlannedExperiment& p) {
    for (const Stage& stage : p.plan.stages) {
      if (stage.divides_itself)
        return add("stages have groups or divided states of their own", "one group and shard for the plan");
      if (stage.share != Share::Samples || stage.micro_batch_size != p.plan.stages.front().micro_batch_size ||
          stage.replicas() != p.plan.stages.front().replicas() ||
          stage.shape.recomputation != p.plan.stages.front().shape.recomputation)
        return add("stages differ in replicas, micro-batches or recomputation", "a plan of the planner balanced");
    }
  }
  void throw_if_any() const {
    if (!problems_.empty()) throw InputError(problems_);
  }

 private:
  std::string framework_;
  const PlanSpec& plan_;
  std::vector<Diagnostic> problems_;
};

/// "Et*3|(tt|)*29,m|L" without the shorthand: E embedding, t a layer, L the loss, | between stages.
std::string layout_of(const std::vector<int>& layers) {
  std::string text = "E";
  for (std::size_t s = 0; s < layers.size(); ++s)
    text += fmt::format("{}{}", s > 0 ? "|" : "", layers[s] > 0 ? fmt::format("t*{}", layers[s]) : "");
  return text + "L";
}

int samples_per_replica(const PlannedExperiment& p) {
  const Stage& first = p.plan.stages.front();
  return first.micro_batch_size / first.replicas();
}

std::string_view precision_of(const PlannedExperiment& p) {
  return p.experiment.rules ? name(p.experiment.rules->format) : std::string_view("bf16");
}

/// Stages of each rank: 1 without an interleaved order.
int chunks_of(const PlannedExperiment& p, int ranks) { return p.plan.stage_count() / ranks; }

int rank_count(const PlannedExperiment& p) {
  std::set<DeviceId> first;
  for (const Stage& stage : p.plan.stages) first.insert(stage.devices().front());
  return static_cast<int>(first.size());
}

}  // namespace

std::string megatron_arguments(const PlannedExperiment& p) {
  const TransformerFacts f = facts_of(p.model());
  const StageShape& shape = p.plan.stages.front().shape;
  const Degrees& d = shape.degrees;
  const int ranks = rank_count(p), chunks = chunks_of(p, ranks);
  const std::string schedule = p.experiment.schedule.name();
  Refusals refusals("export megatron", p.experiment.plan);
  refusals.require_transformer(f);
  refusals.require_even(p);
  const bool pipeline_last = to_text(d.order) == "tp-cp-ep-dp-pp";
  if (!pipeline_last && to_text(d.order) != "tp-cp-ep-pp-dp")
    refusals.add(fmt::format("Megatron-LM's arguments do not say the order {}", to_text(d.order)),
                 "order: tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp", "group");
  const bool runs = schedule == "1f1b" || schedule == "interleaved" || ranks == 1;
  if (!runs)
    refusals.add(fmt::format("Megatron-LM does not run the schedule '{}'", schedule),
                 "run.schedule: 1f1b, or interleaved");
  if (ranks == 1 && chunks > 1)
    refusals.add("Megatron-LM does not interleave the stages of a single rank", "plan.stages: 1, or more ranks",
                 "stages");
  if (shape.recomputation == Recomputation::Full)
    refusals.add("Megatron-LM recomputes layer by layer, not a whole stage before its backward", "recompute: layers",
                 "recompute");
  if (shape.recomputes_half())
    refusals.add("Megatron-LM does not recompute half of a layer", "recompute: layers, selective or none", "recompute");
  if (!p.experiment.schedule.flushes()) refusals.add("Megatron-LM flushes the pipeline", "weights: flush");
  refusals.throw_if_any();

  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) { lines.push_back("--" + line); };
  add(fmt::format("num-layers {}", f.layers));
  add(fmt::format("hidden-size {}", f.hidden));
  if (f.feed_forward > 0) add(fmt::format("ffn-hidden-size {}", f.feed_forward));
  add(fmt::format("num-attention-heads {}", f.heads));
  if (f.head_width * f.heads != f.hidden) add(fmt::format("kv-channels {}", f.head_width));
  if (f.key_value_heads != f.heads) {
    add("group-query-attention");
    add(fmt::format("num-query-groups {}", f.key_value_heads));
  }
  add(fmt::format("seq-length {}", f.sequence));
  add(fmt::format("max-position-embeddings {}", f.sequence));
  add(fmt::format("vocab-size {}", f.vocabulary));
  if (f.gated) add("swiglu");
  if (f.rms) add("normalization RMSNorm");
  if (f.rotary) add("position-embedding-type rope");
  if (!f.bias) add("disable-bias-linear");
  if (!f.bias && f.query_bias) add("add-qkv-bias");
  if (f.query_norm) add("qk-layernorm");
  if (p.experiment.rules && !p.experiment.rules->software.dropout) {
    add("hidden-dropout 0");
    add("attention-dropout 0");
  }
  if (!f.tied) add("untie-embeddings-and-output-weights");
  if (f.experts > 0) {
    add(fmt::format("num-experts {}", f.experts));
    add(fmt::format("moe-router-topk {}", f.active));
    add(fmt::format("moe-ffn-hidden-size {}", f.expert_width));
    add("moe-grouped-gemm");
    const bool once = shape.dispatcher == ExpertDispatch::PerNode;
    add(fmt::format("moe-token-dispatcher-type {}", once ? "flex" : "alltoall"));
    if (once) add("moe-enable-deepep");
    if (shape.overlaps_shared) add("moe-shared-expert-overlap");
  }
  add(fmt::format("tensor-model-parallel-size {}", d.tensor));
  if (d.sequence) add("sequence-parallel");
  add(fmt::format("pipeline-model-parallel-size {}", ranks));
  if (!pipeline_last) add("use-tp-pp-dp-mapping");
  const std::vector<int> layers = layers_of(p);
  const bool even = std::all_of(layers.begin(), layers.end(), [&](int n) { return n == layers.front(); });
  if (ranks > 1 && !even) {
    add(fmt::format("pipeline-model-parallel-layout \"{}\"", layout_of(layers)));
  } else if (chunks > 1) {
    add(fmt::format("num-virtual-stages-per-pipeline-rank {}", chunks));
  }
  if (d.context > 1) {
    constexpr const char* kTypes[] = {"p2p", "all_gather", "a2a"};
    add(fmt::format("context-parallel-size {}", d.context));
    add(fmt::format("cp-comm-type {}", kTypes[static_cast<int>(shape.exchange)]));
  }
  if (d.expert > 1) add(fmt::format("expert-model-parallel-size {}", d.expert));
  if (f.experts > 0) add(fmt::format("expert-tensor-parallel-size {}", d.expert_tensor));
  add(fmt::format("micro-batch-size {}", samples_per_replica(p)));
  add(fmt::format("global-batch-size {}", p.plan.mini_batch));
  if (shape.sharding == StateSharding::Optimizer) add("use-distributed-optimizer");
  if (shape.sharding > StateSharding::Optimizer) {
    add("use-megatron-fsdp");
    add(fmt::format("data-parallel-sharding-strategy {}",
                    shape.sharding == StateSharding::Gradients ? "optim_grads" : "optim_grads_params"));
  }
  if (shape.shard_copies() > 1) add(fmt::format("num-distributed-optimizer-instances {}", shape.shard_copies()));
  if (const auto& rule = p.experiment.run.buckets; rule && shape.sharding <= StateSharding::Optimizer) {
    add("overlap-grad-reduce");
    const double bytes = p.experiment.rules ? p.experiment.rules->software.gradient_bytes : 4;
    if (rule->gradients.value > 0) add(fmt::format("ddp-bucket-size {:.0f}", rule->gradients.value / bytes));
  }
  if (shape.recomputes_attention()) add("recompute-granularity selective");
  if (shape.recomputes_outputs()) {
    add("recompute-granularity selective");
    add(f.experts > 0 ? "recompute-modules layernorm moe_act" : "recompute-modules layernorm");
  }
  if (shape.recomputes_layers()) {
    add("recompute-granularity full");
    add("recompute-method uniform");
    add("recompute-num-layers 1");
  }
  const std::string_view precision = precision_of(p);
  if (precision == "fp16") add("fp16");
  if (precision != "fp16" && precision != "fp32" && precision != "tf32") add("bf16");
  if (precision == "fp8") add("fp8-format hybrid");
  if (precision == "mxfp8") add("fp8-format e4m3"), add("fp8-recipe mxfp8");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string torchtitan_config(const PlannedExperiment& p) {
  const TransformerFacts f = facts_of(p.model());
  const StageShape& shape = p.plan.stages.front().shape;
  const Degrees& d = shape.degrees;
  const int ranks = rank_count(p);
  const std::string schedule = p.experiment.schedule.name();
  const std::pair<const char*, const char*> kSchedules[] = {{"1f1b", "1F1B"},
                                                            {"gpipe", "GPipe"},
                                                            {"interleaved", "Interleaved1F1B"},
                                                            {"interleaved-zb", "InterleavedZeroBubble"},
                                                            {"zb-v", "ZBVZeroBubble"}};
  const auto entry =
      std::find_if(std::begin(kSchedules), std::end(kSchedules), [&](const auto& s) { return schedule == s.first; });
  Refusals refusals("export torchtitan", p.experiment.plan);
  refusals.require_usual_order(d);
  refusals.require_transformer(f);
  refusals.require_even(p);
  if (ranks > 1 && entry == std::end(kSchedules))
    refusals.add(fmt::format("torchtitan does not run the schedule '{}'", schedule),
                 "1f1b, gpipe, interleaved, interleaved-zb or zb-v");
  if (shape.sharding == StateSharding::Optimizer || shape.sharding == StateSharding::Gradients)
    refusals.add("torchtitan divides weights with everything else, or nothing", "shard: weights, or none", "shard");
  if (shape.shard_within % d.context != 0)
    refusals.add(fmt::format("torchtitan divides weights over whole context groups of {}", d.context),
                 fmt::format("shard: within a multiple of {}", d.context), "shard");
  if (d.tensor > 1 && !d.sequence)
    refusals.add("torchtitan's tensor parallelism divides rows too", "group: {sequence: true}", "group");
  if (shape.recomputation == Recomputation::Full)
    refusals.add("torchtitan recomputes layer by layer", "recompute: layers", "recompute");
  if (shape.recomputes_outputs())
    refusals.add("torchtitan does not choose outputs of norms and activations", "recompute: half, layers or none",
                 "recompute");
  refusals.throw_if_any();
  const bool shards = shape.sharding == StateSharding::Weights;
  std::string text =
      fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                  ranks > 1 ? p.plan.mini_batch / d.replicas : samples_per_replica(p), p.plan.mini_batch, f.sequence);
  text += fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "fsdp_reshard_after_forward = \"{}\"\ntensor_parallel_degree = {}\ncontext_parallel_degree = {}\n"
      "pipeline_parallel_degree = {}\n",
      shards ? shape.shard_copies() : d.replicas, shards ? d.replicas / shape.shard_copies() : 1,
      shape.reshard ? "always" : "never", d.tensor, d.context, ranks);
  if (ranks > 1)
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n", entry->second,
                        samples_per_replica(p));
  if (f.experts > 0)
    text += fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = {}\n", d.expert, d.expert_tensor);
  const char* mode = shape.recomputes_layers()                                 ? "full"
                     : shape.recomputes_attention() || shape.recomputes_half() ? "selective"
                                                                               : "none";
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", mode);
  return shape.recomputes_half() ? text + "selective_ac_option = \"op\"\n" : text;
}

std::string deepspeed_config(const PlannedExperiment& p) {
  const StageShape& shape = p.plan.stages.front().shape;
  const Degrees& d = shape.degrees;
  const int ranks = rank_count(p);
  Refusals refusals("export deepspeed", p.experiment.plan);
  refusals.require_usual_order(d);
  refusals.require_even(p);
  if (d.divides())
    refusals.add("DeepSpeed's configuration has no tensor, context or expert group: the model's code makes them",
                 "a plan without group", "group");
  if (ranks > 1 && p.experiment.schedule.name() != "1f1b")
    refusals.add(fmt::format("DeepSpeed's pipeline does not run the schedule '{}'", p.experiment.schedule.name()),
                 "run.schedule: 1f1b");
  if (shape.shard_copies() > 1)
    refusals.add("DeepSpeed's ZeRO divides over all replicas", "shard without within", "shard");
  if (ranks > 1 && shape.sharding > StateSharding::Optimizer)
    refusals.add("DeepSpeed's pipeline takes no ZeRO-2 or ZeRO-3", "shard: optimizer, or one stage", "shard");
  refusals.throw_if_any();
  const int each = samples_per_replica(p), replicas = d.replicas;
  const std::string_view precision = precision_of(p);
  std::string text = fmt::format(
      "{{\n  \"train_batch_size\": {},\n  \"train_micro_batch_size_per_gpu\": {},\n"
      "  \"gradient_accumulation_steps\": {},\n  \"zero_optimization\": {{\"stage\": {}}},\n"
      "  \"fp16\": {{\"enabled\": {}}},\n  \"bf16\": {{\"enabled\": {}}}",
      p.plan.mini_batch, each, p.plan.mini_batch / (each * replicas), static_cast<int>(shape.sharding),
      precision == "fp16", precision == "bf16");
  if (ranks > 1) text += fmt::format(",\n  \"pipeline\": {{\"stages\": {}}}", ranks);
  return text + "\n}\n";
}

}  // namespace stagecraft
