// Which rules of Megatron-LM 0.20 (sim/interchange/rules/megatron.cpp) the arguments break, after its parser. Rules of
// how layers are divided are in megatron_pipeline.cpp.

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

class RuleCheck {
 public:
  RuleCheck(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape, std::int64_t replicas)
      : a_(a), words_(a), s_(s), shape_(shape), replicas_(replicas) {
    const std::string given = word("moe-token-dispatcher-type");
    dispatcher_ = given.empty() ? "allgather" : given;
    granularity_ = word("recompute-granularity");
    if (granularity_.empty() && a.has("recompute-activations")) granularity_ = "selective";
    modules_ = words_.words("recompute-modules");
    if (granularity_ != "full" && a.has("moe-layer-recompute"))
      granularity_ = "selective", modules_.emplace_back("moe");
    has_experts_ = a.has("num-experts");
    has_fsdp_ = a.has("use-megatron-fsdp") || a.has("use-custom-fsdp");
  }

  void run() {
    check_batch();
    check_old_options();
    check_evaluation();
    check_groups();
    check_attention();
    check_overlap();
    check_deferred_work();
    check_experts();
    check_dispatcher();
    check_expert_overlap();
    check_router();
    check_recomputation();
    check_offload();
    check_graphs();
    check_precision();
    check_fsdp();
    check_torch_fsdp();
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  std::string word(const std::string& name) { return words_.word(name); }
  bool recomputes(const char* module) const {
    return granularity_ == "selective" && std::find(modules_.begin(), modules_.end(), module) != modules_.end();
  }

  /// A rule. `option` is where it is broken.
  void require(bool holds, const char* rule, const char* option, const std::string& message, std::string help) {
    if (holds) return;
    const std::string path = a_.has(option) ? fmt::format("--{}", option) : "";
    problems_.push_back({a_.where(option), path, refused_by_megatron(rule) + message, std::move(help), rule});
  }

  /// The nearest number of samples that `fits` accepts as micro-batches.
  template <class Fits>
  std::string batch_that(std::int64_t micro_batches, const Fits& fits) const {
    std::int64_t more = micro_batches;
    while (!fits(more)) ++more;
    return fmt::format("--global-batch-size {}, which is run.global_batch", more * each_step());
  }

  /// Samples of one micro-batch of all replicas.
  std::int64_t each_step() const { return std::int64_t{s_.micro_batch_size} * std::max<std::int64_t>(replicas_, 1); }

  void check_batch() {
    if (replicas_ == 0 || s_.micro_batch_size == 0 || s_.global_batch == 0) return;
    const std::int64_t each = each_step(), micro_batches = s_.global_batch / each;
    require(s_.global_batch % each == 0, "batch", "global-batch-size",
            fmt::format("{} is no multiple of micro-batch {} x {}", pluralize(s_.global_batch, "sample"),
                        s_.micro_batch_size, pluralize(replicas_, "replica")),
            fmt::format("--global-batch-size {}", (micro_batches + 1) * each));
    if (s_.chunks == 1 || s_.global_batch % each != 0) return;
    const std::int64_t ranks = s_.ranks, group = std::max(s_.chunk_group, 1);
    const char* const option = "microbatch-group-size-per-virtual-pipeline-stage";
    require(group >= ranks, "group-size", option,
            fmt::format("groups of {} on {} with virtual stages", pluralize(group, "micro-batch", "es"),
                        pluralize(ranks, "pipeline rank")),
            fmt::format("--{} {}, or leave it out", option, ranks));
    if (group < ranks) return;
    const auto remainder = [&](std::int64_t m) { return m >= group && (m % group == 0 || m % group >= ranks); };
    require(micro_batches >= group, "few-micro-batches", "global-batch-size",
            fmt::format("{} with virtual stages, which need {} or more on {}",
                        pluralize(micro_batches, "micro-batch", "es"), group, pluralize(ranks, "pipeline rank")),
            batch_that(group, remainder));
    require(micro_batches < group || remainder(micro_batches), "remainder", "global-batch-size",
            fmt::format("{} leave {} in the last group of {}, fewer than the {}",
                        pluralize(micro_batches, "micro-batch", "es"), micro_batches % group, group,
                        pluralize(ranks, "pipeline rank")),
            batch_that(micro_batches, remainder));
  }

  /// Options that the parser still has, and that are refused then.
  void check_old_options() {
    for (const auto& [option, replacement] : {std::pair{"batch-size", "micro-batch-size"},
                                              {"warmup", "lr-warmup-fraction"},
                                              {"model-parallel-size", "tensor-model-parallel-size"}})
      require(!a_.has(option), "old-options", option, "it is an option of older versions",
              fmt::format("--{}", replacement));
  }

  void check_evaluation() {
    const int batch = words_.find_number("eval-global-batch-size").value_or(s_.global_batch),
              each = words_.find_number("eval-micro-batch-size").value_or(s_.micro_batch_size);
    if (replicas_ == 0 || each == 0 || (batch == s_.global_batch && each == s_.micro_batch_size)) return;
    require(batch % (each * replicas_) == 0, "evaluation-batch",
            a_.has("eval-global-batch-size") ? "eval-global-batch-size" : "eval-micro-batch-size",
            fmt::format("{} are no multiple of micro-batch {} x {}", pluralize(batch, "sample"), each,
                        pluralize(replicas_, "replica")),
            "a multiple of both");
  }

  void check_groups() {
    const int tensor = s_.tensor, context = s_.context;
    const int hidden = words_.find_number("hidden-size").value_or(0);
    require(a_.has("kv-channels") || shape_.heads == 0 || hidden % shape_.heads == 0, "head-width",
            "num-attention-heads",
            fmt::format("{} do not divide a width of {}", pluralize(shape_.heads, "head"), hidden),
            "a divisor of the width, or --kv-channels");
    require(shape_.heads % tensor == 0, "heads", "tensor-model-parallel-size",
            fmt::format("tensor {} does not divide {}", tensor, pluralize(shape_.heads, "head")),
            "a divisor of the heads");
    if (a_.has("group-query-attention") && !a_.has("multi-latent-attention")) {
      const int groups = words_.find_number("num-query-groups").value_or(1);
      require(
          groups % tensor == 0 || tensor % groups == 0, "query-groups", "num-query-groups",
          fmt::format("{} is neither a multiple nor a divisor of tensor {}", pluralize(groups, "query group"), tensor),
          "a tensor degree that divides the query groups");
    }
    require(!a_.has("multi-latent-attention") || !a_.has("group-query-attention"), "latent-attention",
            "group-query-attention", "latent attention has no query groups", "leave it out");
    require(context == 1 || shape_.sequence % (2 * std::int64_t{context}) == 0, "context-sequence",
            "context-parallel-size",
            fmt::format("a sequence of {} cannot be divided into 2 x {} parts", shape_.sequence, context),
            "a sequence that is a multiple of twice the context degree");
    const std::vector<std::string> exchanges = words_.words("cp-comm-type");
    const bool levels = std::find(exchanges.begin(), exchanges.end(), "a2a+p2p") != exchanges.end();
    const char* const sizes = "hierarchical-context-parallel-sizes";
    require(!levels || a_.has(sizes), "context-levels", "cp-comm-type",
            "a2a+p2p needs --hierarchical-context-parallel-sizes", "p2p, all_gather or a2a");
    constexpr std::int64_t kMost = 1'000'000;  // No degree is above it, so a larger product is not computed.
    std::int64_t product = 1;
    for (const std::string& size : words_.words(sizes)) {
      std::string_view rest = size;
      product = std::min(product * std::clamp<std::int64_t>(read_number(rest).value_or(0), 0, kMost), kMost + 1);
    }
    require(!a_.has(sizes) || product == context, "context-levels", sizes,
            fmt::format("the product of the sizes is {}{}, and context {}", product > kMost ? "more than " : "",
                        std::min(product, kMost), context),
            "sizes whose product is the context degree");
    require(context == 1 || exchanges.size() < 2 || std::ssize(exchanges) == shape_.layers, "context-list",
            "cp-comm-type",
            fmt::format("{} for {}", pluralize(std::ssize(exchanges), "exchange"), pluralize(shape_.layers, "layer")),
            "one, or one for each layer");
    const int instances = words_.find_number("num-distributed-optimizer-instances").value_or(1);
    require(replicas_ == 0 || replicas_ * context % instances == 0, "instances", "num-distributed-optimizer-instances",
            fmt::format("{} do not divide {}", pluralize(instances, "instance"), pluralize(replicas_ * context, "GPU")),
            "a divisor of replicas x context");
  }

  void check_attention() {
    const std::string rotation = word("rope-type");
    const std::optional<int> positions = words_.find_number("max-position-embeddings");
    require(!positions || *positions >= shape_.sequence, "positions", "max-position-embeddings",
            fmt::format("a sequence of {} has more than {} positions", shape_.sequence, positions.value_or(0)),
            fmt::format("--max-position-embeddings {}", shape_.sequence));
    const std::string kind = word("position-embedding-type");
    const bool is_rotary = kind == "rope" || kind == "none" || a_.has("use-rotary-position-embeddings");
    const bool is_fused = is_rotary && kind != "none" && !a_.has("no-rope-fusion");
    require(!a_.has("multi-latent-attention") || rotation.empty() || rotation == "yarn" || !is_fused, "latent-rotation",
            "rope-type", fmt::format("the rotation '{}' of latent attention is not fused", rotation),
            "leave it out, or --no-rope-fusion");
    require(!a_.has("no-position-embedding") || kind == "rope" || a_.has("use-rotary-position-embeddings"),
            "no-positions", "no-position-embedding", "another option says so since then",
            "--position-embedding-type none");
    require(kind != "mrope" || a_.has("mrope-section"), "sections", "position-embedding-type",
            "mrope needs --mrope-section", "--mrope-section, or --position-embedding-type rope");
    require(
        shape_.next_tokens == 0 || is_rotary, "next-token-positions", "mtp-num-layers",
        fmt::format("next-token modules have no positions of the kind {}", kind.empty() ? "learned_absolute" : kind),
        "--position-embedding-type rope");
  }

  void check_overlap() {
    require(!a_.has("tp-comm-overlap") || (s_.sequence_parallel && s_.tensor > 1), "tensor-overlap", "tp-comm-overlap",
            s_.tensor == 1 ? "a tensor group of one device has no sequence parallelism, which it needs"
                           : "it needs sequence parallelism",
            s_.tensor == 1 ? "leave it out" : "--sequence-parallel");
    const char* const gather = "overlap-param-gather";
    require(!a_.has(gather) || a_.has("overlap-grad-reduce"), "gather-overlap", gather,
            "it needs --overlap-grad-reduce", "--overlap-grad-reduce");
    require(!a_.has(gather) || a_.has("use-distributed-optimizer") || has_fsdp_ || word("optimizer") == "dist_muon",
            "gather-optimizer", gather, "it needs the distributed optimizer or FSDP", "--use-distributed-optimizer");
    const char* const step = "overlap-param-gather-with-optimizer-step";
    require(!a_.has(step) || (a_.has(gather) && a_.has("use-distributed-optimizer") && s_.chunks > 1), "gather-in-step",
            step, "it needs --overlap-param-gather, the distributed optimizer and virtual stages", "leave it out");
    require(!a_.has(step) || word("ckpt-format") == "torch", "gather-in-step", step,
            "it needs checkpoints that are not distributed", "--ckpt-format torch");
    require(!a_.has("cross-entropy-loss-fusion") || word("cross-entropy-fusion-impl") != "te", "loss",
            "cross-entropy-fusion-impl", "te is not for the fused loss", "--cross-entropy-fusion-impl native");
  }

  void check_deferred_work() {
    const char* const deferred = "defer-embedding-wgrad-compute";
    require(!a_.has(deferred) || s_.ranks > 1, "embedding-gradients", deferred, "it needs a pipeline", "leave it out");
    require(!a_.has(deferred) || !a_.has("no-gradient-accumulation-fusion"), "embedding-gradients", deferred,
            "it needs fused accumulation of gradients", "leave --no-gradient-accumulation-fusion out");
    const char* const flush = "overlap-p2p-communication-warmup-flush";
    require(!a_.has(flush) || (s_.chunks > 1 && !a_.has("no-overlap-p2p-communication")), "message-overlap", flush,
            "messages do not overlap without virtual stages, or with --no-overlap-p2p-communication", "leave it out");
    const char* const dispatch = "overlap-dispatch-backward-with-experts-wgrad";
    for (const char* other : {"overlap-moe-expert-parallel-comm", "delay-wgrad-compute"})
      require(!a_.has(dispatch) || !a_.has(other), "dispatch-overlap", dispatch, fmt::format("it excludes --{}", other),
              "leave one of them out");
  }

  void check_experts() {
    if (!has_experts_) {
      require(!a_.has("moe-ffn-hidden-size") || a_.has("moe-layer-freq"), "no-experts", "moe-ffn-hidden-size",
              "the model has no experts", "--num-experts NUMBER, or leave it out");
      require(words_.find_number("expert-model-parallel-size").value_or(1) == 1, "no-experts",
              "expert-model-parallel-size", "the model has no experts", "leave it out");
      return;
    }
    const int experts = words_.find_number("num-experts").value_or(1);
    const std::int64_t each = std::int64_t{s_.expert} * s_.expert_tensor;
    require(experts % s_.expert == 0, "experts", "expert-model-parallel-size",
            fmt::format("expert {} does not divide {}", s_.expert, pluralize(experts, "expert")),
            "a divisor of the experts");
    require(s_.tensor == 1 || s_.sequence_parallel, "experts-sequence", "tensor-model-parallel-size",
            "experts in a tensor group need sequence parallelism", "--sequence-parallel");
    require(s_.expert_tensor == 1 || a_.has("disable-bias-linear"), "expert-bias", "expert-tensor-parallel-size",
            "experts with biases are not divided by expert tensor parallelism",
            "--expert-tensor-parallel-size 1, or --disable-bias-linear");
    if (replicas_ > 0) {
      const std::int64_t devices = replicas_ * s_.tensor * s_.context;  // One pipeline rank has these.
      require(devices % each == 0, "expert-devices", "expert-model-parallel-size",
              fmt::format("expert tensor {} x expert {} x {} does not divide {}", s_.expert_tensor, s_.expert,
                          pluralize(s_.ranks, "pipeline rank"), pluralize(devices * s_.ranks, "GPU")),
              s_.expert_tensor > 1 ? "--expert-tensor-parallel-size 1, or a smaller expert degree"
                                   : "a smaller expert degree");
      require(s_.order.empty() || s_.ranks == 1 || devices % each != 0 || devices / each == replicas_, "expert-order",
              "use-tp-pp-dp-mapping",
              fmt::format("experts have {}, and the rest {}", pluralize(devices / each, "data-parallel replica"),
                          replicas_),
              "leave it out");
    }
    const char* const shared = "moe-shared-expert-overlap";
    require(!a_.has(shared) || dispatcher_ != "allgather", "shared-overlap", shared,
            "it needs the dispatcher alltoall or flex", "--moe-token-dispatcher-type alltoall");
    require(!a_.has(shared) || !recomputes("shared_experts"), "shared-recomputed", shared,
            "shared experts are recomputed", "leave one of them out");
  }

  /// The library of exchanges counts with the dispatcher flex alone, and is DeepEP where none is named.
  void check_dispatcher() {
    const std::string library = word("moe-flex-dispatcher-backend");
    const bool has_deepep = dispatcher_ == "flex" && (library.empty() || library == "deepep");
    require(!a_.has("moe-enable-deepep") || dispatcher_ == "flex", "deepep", "moe-enable-deepep",
            "DeepEP needs the dispatcher flex",
            "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep");
    require(!a_.has("moe-enable-deepep") || library != "hybridep", "deepep", "moe-enable-deepep",
            "--moe-flex-dispatcher-backend names HybridEP", "leave it out");
    require(library != "ncclep" || dispatcher_ == "flex", "ncclep", "moe-flex-dispatcher-backend",
            "ncclep needs the dispatcher flex", "--moe-token-dispatcher-type flex");
    const char* const padded = "moe-pad-expert-input-to-capacity";
    require(!a_.has(padded) || a_.has("moe-expert-capacity-factor"), "capacity", padded, "no capacity factor is given",
            "--moe-expert-capacity-factor 1.0");
    const std::string balancing = word("moe-router-load-balancing-type");
    require(!a_.has("moe-expert-capacity-factor") || (balancing != "sinkhorn" && balancing != "quantile_balancing"),
            "capacity", "moe-expert-capacity-factor", fmt::format("no capacity goes with {} balancing", balancing),
            "--moe-router-load-balancing-type aux_loss");
    const char* const of_rank = "moe-expert-rank-capacity-factor";
    require(!a_.has(of_rank) || library == "hybridep" || library == "ncclep", "capacity", of_rank,
            "only HybridEP and NCCL have a capacity of ranks", "--moe-flex-dispatcher-backend hybridep");
    require(!a_.has(padded) || !has_deepep, "capacity", padded, "DeepEP does not pad",
            "--moe-flex-dispatcher-backend hybridep, or leave it out");
    for (const char* routes : {"moe-router-padding-for-fp8", "moe-router-padding-for-quantization"}) {
      require(!a_.has(routes) || a_.has("fp8-format") || a_.has("fp4-format"), "router-padding", routes,
              "products are neither in fp8 nor in fp4", "leave it out");
      require(!a_.has(routes) || dispatcher_ != "allgather", "router-padding", routes,
              "the dispatcher allgather does not pad", "--moe-token-dispatcher-type alltoall");
    }
  }

  void check_expert_overlap() {
    const char* const overlap = "overlap-moe-expert-parallel-comm";
    require(!a_.has("delay-wgrad-compute") || a_.has(overlap), "weight-gradients", "delay-wgrad-compute",
            fmt::format("it needs --{}", overlap), fmt::format("--{}, or leave it out", overlap));
    if (!a_.has(overlap)) return;
    const auto rule = [&](bool holds, const char* why, const char* help) {
      require(holds, "expert-overlap", overlap, why, help);
    };
    rule(s_.expert > 1, "it needs experts on several devices", "--expert-model-parallel-size 2 or more");
    rule(dispatcher_ != "allgather", "it needs the dispatcher alltoall or flex",
         "--moe-token-dispatcher-type alltoall");
    rule(s_.ranks == 1 || s_.chunks > 1, "pipeline ranks need virtual stages",
         "--num-virtual-stages-per-pipeline-rank");
    rule(a_.has("bf16") || a_.has("fp16"), "it needs bf16 or fp16", "--bf16");
    rule(granularity_ != "full" && !recomputes("moe"), "experts are recomputed",
         "--recompute-granularity selective without moe");
    rule(!a_.has("moe-shared-expert-overlap"), "shared experts overlap already", "leave one of them out");
    rule(shape_.next_tokens <= 1, "it takes one next-token module at most", "--mtp-num-layers 1");
    const std::vector<std::string> graphs = graph_modules();
    rule(std::none_of(graphs.begin(), graphs.end(), [](const auto& m) { return m == "moe" || m == "mlp"; }),
         "CUDA graphs have the layer of experts", "--cuda-graph-modules without moe and mlp");
  }

  void check_router() {
    const std::optional<int> groups = words_.find_number("moe-router-num-groups"),
                             active = words_.find_number("moe-router-group-topk");
    const int experts = words_.find_number("num-experts").value_or(1);
    require(!active || (groups && experts % *groups == 0 && *active <= *groups), "router-groups",
            "moe-router-group-topk", "it needs as many --moe-router-num-groups, which divide the experts",
            "leave it out");
    const std::string score = word("moe-router-score-function");
    require(!a_.has("moe-router-enable-expert-bias") || score == "sigmoid" || score == "sqrtsoftplus", "router-bias",
            "moe-router-enable-expert-bias", "it needs the score function sigmoid or sqrtsoftplus",
            "--moe-router-score-function sigmoid");
    require(!has_experts_ || words_.find_number("moe-router-topk").value_or(2) > 1 || score == "sigmoid" ||
                a_.has("moe-router-pre-softmax"),
            "router-top", "moe-router-topk", "one expert a token needs --moe-router-pre-softmax",
            "--moe-router-pre-softmax");
  }

  void check_recomputation() {
    const char* const number = "recompute-num-layers";
    if (granularity_ == "full") {
      require(a_.has("recompute-method"), "recompute-method", "recompute-granularity",
              "full recomputation needs --recompute-method", "--recompute-method uniform");
      require(a_.has(number), "recompute-layers", "recompute-granularity",
              "full recomputation needs --recompute-num-layers", "--recompute-num-layers 1");
    }
    require(granularity_ != "full" || !a_.has("moe-layer-recompute"), "recompute-modules", "moe-layer-recompute",
            "layers are recomputed as a whole", "leave it out");
    if (granularity_ != "selective") return;
    require(!recomputes("gdn_norm_out") || a_.has("experimental-attention-variant"), "recompute-modules",
            "recompute-modules", "gdn_norm_out needs --experimental-attention-variant gdn", "leave it out");
    require(!recomputes("mhc") || a_.has("enable-mhc-connections"), "recompute-modules", "recompute-modules",
            "mhc needs --enable-mhc-connections", "leave it out");
    require(!a_.has("recompute-method"), "selective-method", "recompute-method", "selective recomputation takes none",
            "leave it out");
    require(!a_.has(number), "selective-layers", number, "selective recomputation takes none", "leave it out");
    require(!recomputes("moe_act") || a_.has("moe-grouped-gemm"), "recompute-modules", "recompute-modules",
            "moe_act needs --moe-grouped-gemm", "--moe-grouped-gemm");
    require(!recomputes("mla_up_proj") || a_.has("multi-latent-attention"), "recompute-modules", "recompute-modules",
            "mla_up_proj needs latent attention", "leave it out");
    require(!is_delayed() || !(recomputes("layernorm") || recomputes("moe_act")), "recompute-fp8", "recompute-modules",
            "delayed scaling of fp8 excludes layernorm and moe_act", "--fp8-recipe tensorwise");
  }

  void check_offload() {
    const char* const layers = "cpu-offloading-num-layers";
    const bool offloads_layers = a_.has(layers) && word(layers) != "0";
    require(!offloads_layers || words_.find_number(layers).value_or(0) < shape_.layers, "offload", layers,
            fmt::format("the model has {}, of which one stays on the GPU at least", pluralize(shape_.layers, "layer")),
            "fewer layers");
    require(!offloads_layers || s_.ranks == 1, "offload", layers, "layers are not offloaded in a pipeline",
            "--pipeline-model-parallel-size 1");
    require(!offloads_layers || granularity_.empty(), "offload", layers, "offloaded layers are not recomputed",
            "leave one of them out");
    require(!offloads_layers || graphs().empty() || graphs() == "full_iteration", "offload", layers,
            "layers in CUDA graphs are not offloaded", "--cuda-graph-impl none");
    const char* const saved = "distribute-saved-activations";
    require(!a_.has(saved) || (s_.tensor > 1 && granularity_ == "full" && !s_.sequence_parallel), "saved-activations",
            saved, "it needs a tensor group, full recomputation and no sequence parallelism", "leave it out");
    const char* const activations = "fine-grained-activation-offloading";
    if (a_.has(activations)) {
      const std::vector<std::string> modules = words_.words("offload-modules");
      const auto has = [&](const char* m) { return std::find(modules.begin(), modules.end(), m) != modules.end(); };
      const auto rule = [&](bool holds, const std::string& why, const std::string& help) {
        require(holds, "activation-offload", activations, why, help);
      };
      rule(!modules.empty(), "no modules are named", "--offload-modules moe_act");
      constexpr std::string_view kModules[] = {"core_attn", "attn_proj", "expert_fc1", "fused_group_mlp", "moe_act",
                                               "attn_norm", "mlp_norm",  "qkv_linear", "gdp_qkv"};
      const std::vector<std::string> names(std::begin(kModules), std::end(kModules));
      for (const std::string& module : modules)
        rule(std::find(names.begin(), names.end(), module) != names.end(),
             fmt::format("there is no module '{}'", module), suggest(module, names));
      const bool has_experts = has("moe_act") || has("expert_fc1") || has("fused_group_mlp");
      rule(!recomputes("moe") || !has_experts, "experts are recomputed as a whole", "leave moe out of one of them");
      rule(!has("fused_group_mlp") || a_.has("use-transformer-engine-op-fuser"),
           "fused_group_mlp needs --use-transformer-engine-op-fuser", "--use-transformer-engine-op-fuser");
      rule(!has("fused_group_mlp") || !(has("moe_act") || has("expert_fc1")),
           "fused_group_mlp has moe_act and expert_fc1 already", "--offload-modules fused_group_mlp");
      words_.find_share("activation-offload-fraction");
      rule(!has("attn_proj") || has("core_attn"), "attn_proj needs core_attn", "--offload-modules core_attn attn_proj");
      rule(!offloads_layers, "layers are offloaded already", "leave one of them out");
      rule(a_.variable("NVTE_CPU_OFFLOAD_V1").value_or("1") == "1", "the script sets NVTE_CPU_OFFLOAD_V1 otherwise",
           "export NVTE_CPU_OFFLOAD_V1=1");
    }
    const char* const optimizer = "optimizer-cpu-offload";
    require(!a_.has(optimizer) || a_.has("use-precision-aware-optimizer"), "optimizer-offload", optimizer,
            "it needs --use-precision-aware-optimizer", "--use-precision-aware-optimizer");
    require(!a_.has(optimizer) || !a_.has("fp8-param-gather") || is_delayed(), "optimizer-offload", optimizer,
            "weights in fp8 need delayed scaling with it", "--fp8-recipe delayed");
  }

  std::string graphs() {
    const std::string given = word("cuda-graph-impl");
    return given == "none" ? "" : a_.has("enable-cuda-graph") || a_.has("external-cuda-graph") ? "local" : given;
  }
  std::vector<std::string> graph_modules() {
    return words_.words(a_.has("cuda-graph-scope") ? "cuda-graph-scope" : "cuda-graph-modules");
  }

  void check_graphs() {
    const bool of_iteration = graphs() == "full_iteration";
    require(!of_iteration || a_.has("no-check-for-nan-in-loss-and-grad"), "graph-iteration", "cuda-graph-impl",
            "the loss is checked for NaN", "--no-check-for-nan-in-loss-and-grad");
    require(!of_iteration || graph_modules().empty(), "graph-iteration", "cuda-graph-impl", "modules are named",
            "leave --cuda-graph-modules out");
    require(graphs().empty() || of_iteration || granularity_ != "full", "graph-recompute", "cuda-graph-impl",
            "layers are recomputed as a whole",
            "--recompute-granularity selective, or --cuda-graph-impl full_iteration");
  }

  /// Delayed scaling is what fp8 has where no recipe is named.
  bool is_delayed() { return a_.has("fp8-format") && (!a_.has("fp8-recipe") || word("fp8-recipe") == "delayed"); }

  void check_precision() {
    require(!a_.has("fp4-format") || !a_.has("fp8-format"), "formats", "fp4-format", "fp4 excludes fp8",
            "leave one of them out");
    require(!a_.has("first-last-layers-bf16") || !is_delayed(), "format-of-ends", "first-last-layers-bf16",
            "delayed scaling has all layers in fp8", "--fp8-recipe tensorwise");
    const char* const weights = "fp8-param-gather";
    require(!a_.has(weights) || a_.has("use-distributed-optimizer") || a_.has("use-torch-fsdp2") || has_fsdp_,
            "fp8-weights", weights, "it needs the distributed optimizer or FSDP", "--use-distributed-optimizer");
    require(!a_.has(weights) || a_.has("fp8-format"), "fp8-weights", weights, "products are not in fp8",
            "--fp8-format hybrid, or leave it out");
    require(!a_.has("fp4-param-gather") || a_.has("fp4-format"), "fp4-weights", "fp4-param-gather",
            "products are not in fp4", "--fp4-format e2m1, or leave it out");
    const char* const scores = "fp8-output-proj";
    require(!a_.has(scores) || (a_.has("fp8-format") && word("fp8-recipe") == "mxfp8"), "fp8-scores", scores,
            "it needs products in mxfp8", "--fp8-format e4m3 --fp8-recipe mxfp8, or leave it out");
    for (const auto& [recipe, factory] :
         {std::pair{"fp8-recipe", "fp8-quantizer-factory"}, {"fp4-recipe", "fp4-quantizer-factory"}})
      require(word(recipe) != "custom" || a_.has(factory), "own-recipe", recipe,
              fmt::format("a recipe of your own needs --{}", factory), fmt::format("--{}", factory));
    require(!a_.has("fp32-residual-connection") || a_.has("fp16") || a_.has("bf16"), "wide-sums",
            "fp32-residual-connection", "all numbers are in fp32", "--bf16, or leave it out");
    require(!a_.has("fp16-lm-cross-entropy") || a_.has("fp16"), "narrow-loss", "fp16-lm-cross-entropy",
            "numbers are not in fp16", "--fp16, or leave it out");
    require(!a_.has("fp16") || !a_.has("bf16"), "half-formats", "fp16", "fp16 excludes bf16", "leave one of them out");
  }

  void check_fsdp() {
    const bool format = word("ckpt-format") == "fsdp_dtensor";
    require(!has_fsdp_ || format, "fsdp-checkpoints", "use-megatron-fsdp", "it needs --ckpt-format fsdp_dtensor",
            "--ckpt-format fsdp_dtensor");
    require(has_fsdp_ || !format, "fsdp-checkpoints", "ckpt-format", "fsdp_dtensor is for Megatron-FSDP",
            "--ckpt-format torch_dist");
    if (!has_fsdp_) return;
    require(a_.variable("CUDA_DEVICE_MAX_CONNECTIONS").value_or("") != "1", "fsdp-connections", "use-megatron-fsdp",
            "the script sets CUDA_DEVICE_MAX_CONNECTIONS=1", "unset CUDA_DEVICE_MAX_CONNECTIONS");
    const std::string optimizer = word("optimizer");
    require(optimizer.empty() || optimizer == "adam" || optimizer == "sgd", "fsdp-optimizer", "optimizer",
            "Megatron-FSDP takes adam or sgd", "--optimizer adam");
  }

  void check_torch_fsdp() {
    const char* const fsdp = "use-torch-fsdp2";
    const std::string checkpoints = word("ckpt-format");
    require(checkpoints != "torch_dcp" || (a_.has(fsdp) && s_.tensor == 1 && s_.ranks == 1), "torch-checkpoints",
            "ckpt-format", "torch_dcp is for FSDP2 without tensor and pipeline parallelism",
            "--ckpt-format torch_dist");
    if (!a_.has(fsdp)) return;
    const auto rule = [&](bool holds, const char* why, const char* help) {
      require(holds, "torch-fsdp", fsdp, why, help);
    };
    rule(s_.ranks == 1, "it excludes pipeline parallelism", "--pipeline-model-parallel-size 1");
    rule(s_.expert == 1, "it excludes expert parallelism", "--expert-model-parallel-size 1");
    rule(!a_.has("use-distributed-optimizer"), "it excludes the distributed optimizer", "leave one of them out");
    rule(a_.has("no-gradient-accumulation-fusion"), "it excludes fused accumulation of gradients",
         "--no-gradient-accumulation-fusion");
    rule(a_.has("untie-embeddings-and-output-weights"), "it excludes tied embeddings",
         "--untie-embeddings-and-output-weights");
    rule(!a_.has("fp16"), "it excludes fp16", "--bf16");
    rule(checkpoints.empty() || checkpoints == "torch_dist" || checkpoints == "torch_dcp",
         "it writes no such checkpoints", "--ckpt-format torch_dist");
    rule(a_.variable("CUDA_DEVICE_MAX_CONNECTIONS").value_or("") != "1",
         "the script sets CUDA_DEVICE_MAX_CONNECTIONS=1", "unset CUDA_DEVICE_MAX_CONNECTIONS");
  }

  const MegatronArguments& a_;
  MegatronArguments words_;  ///< A copy whose options count as used without effect on the notes.
  const TrainingSetup& s_;
  const MegatronShape& shape_;
  std::int64_t replicas_;
  std::string dispatcher_, granularity_;
  std::vector<std::string> modules_;
  bool has_experts_ = false, has_fsdp_ = false;
  std::vector<Diagnostic> problems_;
};

}  // namespace

void check_megatron_rules(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape,
                          std::int64_t replicas) {
  RuleCheck(a, s, shape, replicas).run();
}

}  // namespace stagecraft
