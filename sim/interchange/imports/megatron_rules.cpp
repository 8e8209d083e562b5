// Which rules of Megatron-LM 0.20 (sim/interchange/rules/megatron.cpp) the arguments break, after its parser: batches,
// groups, attention and overlap, and what all of these checks ask. Rules of how layers are divided are in
// megatron_pipeline.cpp.

#include "sim/interchange/imports/megatron_rules.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/rules/framework_rule.hpp"

namespace stagecraft {

MegatronRuleCheck::MegatronRuleCheck(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape,
                                     std::int64_t replicas)
    : given_(a), read_(a), setup_(s), shape_(shape), replicas_(replicas) {
  const std::string named = word("moe-token-dispatcher-type");
  dispatcher_ = named.empty() ? "allgather" : named;
  granularity_ = word("recompute-granularity");
  if (granularity_.empty() && a.has("recompute-activations")) granularity_ = "selective";
  modules_ = read_.words("recompute-modules");
  if (granularity_ != "full" && a.has("moe-layer-recompute")) granularity_ = "selective", modules_.emplace_back("moe");
}

bool MegatronRuleCheck::recomputes(const char* module) const {
  return granularity_ == "selective" && std::find(modules_.begin(), modules_.end(), module) != modules_.end();
}

std::string MegatronRuleCheck::graphs() {
  const std::string given = word("cuda-graph-impl");
  return given == "none" ? "" : has("enable-cuda-graph") || has("external-cuda-graph") ? "local" : given;
}

std::vector<std::string> MegatronRuleCheck::graph_modules() {
  return read_.words(has("cuda-graph-scope") ? "cuda-graph-scope" : "cuda-graph-modules");
}

bool MegatronRuleCheck::is_delayed() {
  return has("fp8-format") && (!has("fp8-recipe") || word("fp8-recipe") == "delayed");
}

void MegatronRuleCheck::require(bool holds, const char* rule, const char* option, const std::string& message,
                                std::string help) {
  if (holds || given_.is_before_release(find_rule(megatron_rules(), rule).since)) return;
  const std::string path = has(option) ? fmt::format("--{}", option) : "";
  problems_.push_back(
      {given_.where(option), path, refused_by_megatron(rule, given_.release()) + message, std::move(help), rule});
}

namespace {

/// Samples of one micro-batch of all replicas.
std::int64_t each_step(const MegatronRuleCheck& c) {
  return std::int64_t{c.setup().micro_batch_size} * std::max<std::int64_t>(c.replicas(), 1);
}

/// The nearest number of samples that `fits` accepts as micro-batches.
template <class Fits>
std::string batch_that(const MegatronRuleCheck& c, std::int64_t micro_batches, const Fits& fits) {
  std::int64_t more = micro_batches;
  while (!fits(more)) ++more;
  return fmt::format("--global-batch-size {}, which is run.global_batch", more * each_step(c));
}

void check_batch(MegatronRuleCheck& c) {
  c.require(!c.has("step-batch-size-schedule") || !c.has("global-batch-size"), "batch", "step-batch-size-schedule",
            "the batch is given twice", "leave out --global-batch-size");
  if (c.replicas() == 0 || c.setup().micro_batch_size == 0 || c.setup().global_batch == 0) return;
  const std::int64_t each = each_step(c), micro_batches = c.setup().global_batch / each;
  c.require(c.setup().global_batch % each == 0, "batch", "global-batch-size",
            fmt::format("{} is no multiple of micro-batch {} x {}", pluralize(c.setup().global_batch, "sample"),
                        c.setup().micro_batch_size, pluralize(c.replicas(), "replica")),
            fmt::format("--global-batch-size {}", (micro_batches + 1) * each));
  if (c.setup().chunks == 1 || c.setup().global_batch % each != 0) return;
  const std::int64_t ranks = c.setup().ranks, group = std::max(c.setup().chunk_group, 1);
  const char* const option = "microbatch-group-size-per-virtual-pipeline-stage";
  c.require(group >= ranks, "group-size", option,
            fmt::format("groups of {} on {} with virtual stages", pluralize(group, "micro-batch", "es"),
                        pluralize(ranks, "pipeline rank")),
            fmt::format("--{} {}, or leave it out", option, ranks));
  if (group < ranks) return;
  const auto remainder = [&](std::int64_t m) { return m >= group && (m % group == 0 || m % group >= ranks); };
  c.require(micro_batches >= group, "few-micro-batches", "global-batch-size",
            fmt::format("{} with virtual stages, which need {} or more on {}",
                        pluralize(micro_batches, "micro-batch", "es"), group, pluralize(ranks, "pipeline rank")),
            batch_that(c, group, remainder));
  c.require(micro_batches < group || remainder(micro_batches), "remainder", "global-batch-size",
            fmt::format("{} leave {} in the last group of {}, fewer than the {}",
                        pluralize(micro_batches, "micro-batch", "es"), micro_batches % group, group,
                        pluralize(ranks, "pipeline rank")),
            batch_that(c, micro_batches, remainder));
}

/// Options that the parser still has, and that are refused then.
void check_old_options(MegatronRuleCheck& c) {
  for (const auto& [option, replacement] : {std::pair{"batch-size", "micro-batch-size"},
                                            {"warmup", "lr-warmup-fraction"},
                                            {"model-parallel-size", "tensor-model-parallel-size"}})
    c.require(!c.has(option), "old-options", option, "it is an option of older versions",
              fmt::format("--{}", replacement));
}

void check_evaluation(MegatronRuleCheck& c) {
  const int batch = c.words().find_number("eval-global-batch-size").value_or(c.setup().global_batch),
            each = c.words().find_number("eval-micro-batch-size").value_or(c.setup().micro_batch_size);
  if (c.replicas() == 0 || each == 0 || (batch == c.setup().global_batch && each == c.setup().micro_batch_size)) return;
  c.require(batch % (each * c.replicas()) == 0, "evaluation-batch",
            c.has("eval-global-batch-size") ? "eval-global-batch-size" : "eval-micro-batch-size",
            fmt::format("{} are no multiple of micro-batch {} x {}", pluralize(batch, "sample"), each,
                        pluralize(c.replicas(), "replica")),
            "a multiple of both");
}

void check_groups(MegatronRuleCheck& c) {
  const int tensor = c.setup().tensor, context = c.setup().context;
  const int hidden = c.words().find_number("hidden-size").value_or(0);
  c.require(c.has("kv-channels") || c.shape().heads == 0 || hidden % c.shape().heads == 0, "head-width",
            "num-attention-heads",
            fmt::format("{} do not divide a width of {}", pluralize(c.shape().heads, "head"), hidden),
            "a divisor of the width, or --kv-channels");
  c.require(c.shape().heads % tensor == 0, "heads", "tensor-model-parallel-size",
            fmt::format("tensor {} does not divide {}", tensor, pluralize(c.shape().heads, "head")),
            "a divisor of the heads");
  if (c.has("group-query-attention") && !c.has("multi-latent-attention")) {
    const int groups = c.words().find_number("num-query-groups").value_or(1);
    const bool copies_heads = !c.arguments().is_before_release("0.16");
    c.require(groups % tensor == 0 || (copies_heads && tensor % groups == 0), "query-groups", "num-query-groups",
              fmt::format("{} is {} of tensor {}", pluralize(groups, "query group"),
                          copies_heads ? "neither a multiple nor a divisor" : "no multiple", tensor),
              "a tensor degree that divides the query groups");
  }
  c.require(!c.has("multi-latent-attention") || !c.has("group-query-attention"), "latent-attention",
            "group-query-attention", "latent attention has no query groups", "leave it out");
  c.require(context == 1 || c.shape().sequence % (2 * std::int64_t{context}) == 0, "context-sequence",
            "context-parallel-size",
            fmt::format("a sequence of {} cannot be divided into 2 x {} parts", c.shape().sequence, context),
            "a sequence that is a multiple of twice the context degree");
  const std::vector<std::string> exchanges = c.words().words("cp-comm-type");
  const bool levels = std::find(exchanges.begin(), exchanges.end(), "a2a+p2p") != exchanges.end();
  const char* const sizes = "hierarchical-context-parallel-sizes";
  c.require(!levels || c.has(sizes), "context-levels", "cp-comm-type",
            "a2a+p2p needs --hierarchical-context-parallel-sizes", "p2p, all_gather or a2a");
  constexpr std::int64_t kMost = 1'000'000;  // No degree is above it, so a larger product is not computed.
  std::int64_t product = 1;
  for (const std::string& size : c.words().words(sizes)) {
    std::string_view rest = size;
    product = std::min(product * std::clamp<std::int64_t>(read_number(rest).value_or(0), 0, kMost), kMost + 1);
  }
  c.require(!c.has(sizes) || product == context, "context-levels", sizes,
            fmt::format("the product of the sizes is {}{}, and context {}", product > kMost ? "more than " : "",
                        std::min(product, kMost), context),
            "sizes whose product is the context degree");
  c.require(
      context == 1 || exchanges.size() < 2 || std::ssize(exchanges) == c.shape().layers, "context-list", "cp-comm-type",
      fmt::format("{} for {}", pluralize(std::ssize(exchanges), "exchange"), pluralize(c.shape().layers, "layer")),
      "one, or one for each layer");
  const int instances = c.words().find_number("num-distributed-optimizer-instances").value_or(1);
  c.require(
      c.replicas() == 0 || c.replicas() * context % instances == 0, "instances", "num-distributed-optimizer-instances",
      fmt::format("{} do not divide {}", pluralize(instances, "instance"), pluralize(c.replicas() * context, "GPU")),
      "a divisor of replicas x context");
}

void check_attention(MegatronRuleCheck& c) {
  const std::string rotation = c.word("rope-type");
  const std::optional<int> positions = c.words().find_number("max-position-embeddings");
  c.require(!positions || *positions >= c.shape().sequence, "positions", "max-position-embeddings",
            fmt::format("a sequence of {} has more than {} positions", c.shape().sequence, positions.value_or(0)),
            fmt::format("--max-position-embeddings {}", c.shape().sequence));
  const std::string kind = c.word("position-embedding-type");
  const bool is_rotary = kind == "rope" || kind == "none" || c.has("use-rotary-position-embeddings");
  const bool is_fused = is_rotary && kind != "none" && !c.has("no-rope-fusion");
  c.require(!c.has("multi-latent-attention") || rotation.empty() || rotation == "yarn" || !is_fused, "latent-rotation",
            "rope-type", fmt::format("the rotation '{}' of latent attention is not fused", rotation),
            "leave it out, or --no-rope-fusion");
  c.require(!c.has("no-position-embedding") || kind == "rope" || c.has("use-rotary-position-embeddings"),
            "no-positions", "no-position-embedding", "another option says so since then",
            "--position-embedding-type none");
  c.require(kind != "mrope" || c.has("mrope-section"), "sections", "position-embedding-type",
            "mrope needs --mrope-section", "--mrope-section, or --position-embedding-type rope");
  c.require(
      c.shape().next_tokens == 0 || is_rotary, "next-token-positions", "mtp-num-layers",
      fmt::format("next-token modules have no positions of the kind {}", kind.empty() ? "learned_absolute" : kind),
      "--position-embedding-type rope");
}

void check_overlap(MegatronRuleCheck& c) {
  c.require(!c.has("tp-comm-overlap") || (c.setup().sequence_parallel && c.setup().tensor > 1), "tensor-overlap",
            "tp-comm-overlap",
            c.setup().tensor == 1 ? "a tensor group of one device has no sequence parallelism, which it needs"
                                  : "it needs sequence parallelism",
            c.setup().tensor == 1 ? "leave it out" : "--sequence-parallel");
  const char* const gather = "overlap-param-gather";
  c.require(!c.has(gather) || c.has("overlap-grad-reduce"), "gather-overlap", gather, "it needs --overlap-grad-reduce",
            "--overlap-grad-reduce");
  c.require(!c.has(gather) || c.has("use-distributed-optimizer") || c.has_fsdp() || c.word("optimizer") == "dist_muon",
            "gather-optimizer", gather, "it needs the distributed optimizer or FSDP", "--use-distributed-optimizer");
  const char* const step = "overlap-param-gather-with-optimizer-step";
  c.require(!c.has(step) || (c.has(gather) && c.has("use-distributed-optimizer") && c.setup().chunks > 1),
            "gather-in-step", step, "it needs --overlap-param-gather, the distributed optimizer and virtual stages",
            "leave it out");
  c.require(!c.has(step) || c.word("ckpt-format") == "torch", "gather-in-step", step,
            "it needs checkpoints that are not distributed", "--ckpt-format torch");
  c.require(!c.has("cross-entropy-loss-fusion") || c.word("cross-entropy-fusion-impl") != "te", "loss",
            "cross-entropy-fusion-impl", "te is not for the fused loss", "--cross-entropy-fusion-impl native");
}

void check_deferred_work(MegatronRuleCheck& c) {
  const char* const deferred = "defer-embedding-wgrad-compute";
  c.require(!c.has(deferred) || c.setup().ranks > 1, "embedding-gradients", deferred, "it needs a pipeline",
            "leave it out");
  c.require(!c.has(deferred) || !c.has("no-gradient-accumulation-fusion"), "embedding-gradients", deferred,
            "it needs fused accumulation of gradients", "leave --no-gradient-accumulation-fusion out");
  const char* const flush = "overlap-p2p-communication-warmup-flush";
  c.require(!c.has(flush) || (c.setup().chunks > 1 && !c.has("no-overlap-p2p-communication")), "message-overlap", flush,
            "messages do not overlap without virtual stages, or with --no-overlap-p2p-communication", "leave it out");
  const char* const dispatch = "overlap-dispatch-backward-with-experts-wgrad";
  for (const char* other : {"overlap-moe-expert-parallel-comm", "delay-wgrad-compute"})
    c.require(!c.has(dispatch) || !c.has(other), "dispatch-overlap", dispatch, fmt::format("it excludes --{}", other),
              "leave one of them out");
}

}  // namespace

void check_megatron_rules(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape,
                          std::int64_t replicas) {
  MegatronRuleCheck check(a, s, shape, replicas);
  for (const auto rules : {check_batch, check_old_options, check_evaluation, check_groups, check_attention,
                           check_overlap, check_deferred_work, check_expert_rules, check_memory_rules})
    rules(check);
  if (!check.problems().empty()) throw InputError(check.problems());
}

}  // namespace stagecraft
