// Arguments of Megatron-LM (megatron/training/arguments.py, 0.12 to 0.14): export megatron writes what this reads.

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/imports/megatron_options.hpp"
#include "sim/experiment/imports/shell_words.hpp"
#include "sim/experiment/imports/training_setup.hpp"

namespace stagecraft {
namespace {

struct MegatronArgument {
  std::string value;  ///< Empty for a switch.
  int line = 0;
};

class MegatronReader {
 public:
  MegatronReader(const std::string& text, const std::string& file, const SetupOptions& options)
      : file_(file), options_(options) {
    const std::vector<ShellWord> words = shell_words(text);
    for (std::size_t i = 0; i < words.size(); ++i) add(words, i);
    if (!given_.contains("num-layers"))
      throw InputError({{{file_, 0, 0},
                         {},
                         "there is no --num-layers, so these are not the arguments of Megatron-LM",
                         "give the script that starts the training, or a file with its arguments",
                         "import"}});
  }

  TrainingSetup read() {
    s_.software = "megatron-core";
    read_shape();
    read_experts();
    read_groups();
    read_pipeline();
    read_memory();
    read_precision();
    s_.micro_batch_size = number("micro-batch-size", "plan.micro_batch_size");
    s_.global_batch = number("global-batch-size", "run.global_batch");
    read_devices();
    sort_others();
    return std::move(s_);
  }

 private:
  void add(const std::vector<ShellWord>& words, std::size_t& i) {
    if (!words[i].text.starts_with("--") || words[i].text.size() < 3) return;
    std::string name = words[i].text.substr(2);
    MegatronArgument argument{{}, words[i].line};
    if (const auto equals = name.find('='); equals != std::string::npos) {
      argument.value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < words.size() && !words[i + 1].text.starts_with("--")) {
      argument.value = words[++i].text;
    }
    given_[name] = argument;  // The last one counts, as in argparse.
  }

  [[noreturn]] void refuse(const std::string& name, std::string message, std::string help) const {
    throw InputError({{{file_, given_.at(name).line, 1}, "--" + name, std::move(message), std::move(help), "import"}});
  }

  const MegatronArgument* take(const std::string& name) {
    const auto it = given_.find(name);
    if (it == given_.end()) return nullptr;
    used_.insert(name);
    return &it->second;
  }

  void matched(const std::string& name, const std::string& field, const std::string& value) {
    s_.matched.push_back(fmt::format("--{} -> {}: {}", name, field, value));
  }

  std::optional<int> find_number(const std::string& name) {
    const MegatronArgument* given = take(name);
    if (given == nullptr) return {};
    int value = 0;
    const char* const end = given->value.data() + given->value.size();
    const auto [stop, error] = std::from_chars(given->value.data(), end, value);
    if (given->value.starts_with('$'))
      refuse(name, fmt::format("the value of {} is not in the file", given->value), "write the number into the script");
    if (error != std::errc{} || stop != end || value < 1 || value > 1'000'000)
      refuse(name, fmt::format("'{}' is not a whole number from 1 to 1000000", given->value), "correct the file");
    return value;
  }

  int number(const std::string& name, const std::string& field, int fallback = 0) {
    const std::optional<int> value = find_number(name);
    if (value) matched(name, field, std::to_string(*value));
    return value.value_or(fallback);
  }

  bool flag(const std::string& name, const std::string& field, const std::string& value) {
    if (take(name) == nullptr) return false;
    matched(name, field, value);
    return true;
  }

  std::string word(const std::string& name) {
    const MegatronArgument* given = take(name);
    return given ? given->value : "";
  }

  void field(const char* name, const std::string& value) { s_.model.emplace_back(name, value); }

  int required(const std::string& name, const char* model_field) {
    const int value = number(name, "model." + std::string(model_field));
    if (value == 0)
      throw InputError({{{file_, 0, 0}, {}, fmt::format("there is no --{}", name), "add it to the file", "import"}});
    field(model_field, std::to_string(value));
    return value;
  }

  void read_shape() {
    layers_ = required("num-layers", "layers");
    hidden_ = required("hidden-size", "hidden");
    required("num-attention-heads", "heads");
    if (const int width = number("kv-channels", "model.head_width")) field("head_width", std::to_string(width));
    if (flag("group-query-attention", "model.key_value_heads", "num-query-groups"))
      field("key_value_heads", std::to_string(number("num-query-groups", "model.key_value_heads", 1)));
    required("seq-length", "sequence");
    take("max-position-embeddings");
    read_vocabulary();
    const bool gated = flag("swiglu", "model.gated", "true");
    if (gated) field("gated", "true");
    // Megatron-LM: two thirds of four times the width, a multiple of 64, where the unit is gated.
    feed_forward_ = number("ffn-hidden-size", "model.feed_forward", gated ? hidden_ * 8 / 3 / 64 * 64 : 4 * hidden_);
    field("feed_forward", std::to_string(feed_forward_));
    const std::string norm = word("normalization");
    field("norm", norm == "RMSNorm" ? "rms" : "layer");
    if (!norm.empty()) matched("normalization", "model.norm", norm == "RMSNorm" ? "rms" : "layer");
    read_positions();
    read_attention();
    if (flag("disable-bias-linear", "model.bias", "false")) field("bias", "false");
    if (flag("add-qkv-bias", "model.query_key_value_bias", "true")) field("query_key_value_bias", "true");
    if (flag("qk-layernorm", "model.query_key_norm", "true")) field("query_key_norm", "true");
    if (flag("untie-embeddings-and-output-weights", "model.tied", "false")) field("tied", "false");
  }

  /// Megatron-LM takes a fused attention unless it is told otherwise.
  void read_attention() {
    const std::string backend = word("attention-backend");
    flash_ = backend != "unfused" && backend != "local";
    field("flash_attention", flash_ ? "true" : "false");
    if (!backend.empty()) matched("attention-backend", "model.flash_attention", flash_ ? "true" : "false");
  }

  void read_vocabulary() {
    int size = number("vocab-size", "model.vocabulary");
    if (const int padded = number("padded-vocab-size", "model.vocabulary")) size = padded;
    if (options_.vocabulary > 0) size = options_.vocabulary;
    if (size == 0)
      throw InputError(
          {{{file_, 0, 0}, {}, "there is no --vocab-size: the tokenizer has it", "--vocabulary NUMBER", "import"}});
    field("vocabulary", std::to_string(size));
  }

  void read_positions() {
    const std::string type = word("position-embedding-type");
    const bool old_rotary = take("use-rotary-position-embeddings") != nullptr;
    const std::string positions = type == "rope" || type == "yarn" || old_rotary ? "rotary"
                                  : type == "none" || type == "relative"         ? "none"
                                                                                 : "learned";
    if (!type.empty() || old_rotary) matched("position-embedding-type", "model.positions", positions);
    field("positions", positions);
  }

  void read_experts() {
    const std::optional<int> experts = find_number("num-experts");
    if (!experts) return;
    const int active = number("moe-router-topk", "model.experts.active", 2);
    const int width = number("moe-ffn-hidden-size", "model.experts.width", feed_forward_);
    matched("num-experts", "model.experts.count", std::to_string(*experts));
    field("experts", fmt::format("{{count: {}, active: {}, width: {}}}", *experts, active, width));
    take("moe-grouped-gemm");
    s_.expert = number("expert-model-parallel-size", "plan.group.expert", 1);
    s_.expert_tensor = number("expert-tensor-parallel-size", "plan.group.expert_tensor");
    const std::string dispatcher = word("moe-token-dispatcher-type");
    if (take("moe-enable-deepep") != nullptr)
      s_.dispatcher = "per_node", matched("moe-enable-deepep", "plan.group.dispatcher", "per_node");
    else if (dispatcher == "alltoall")
      s_.dispatcher = "alltoall", matched("moe-token-dispatcher-type", "plan.group.dispatcher", "alltoall");
    else if (!dispatcher.empty())
      s_.unmodeled.push_back("--moe-token-dispatcher-type " + dispatcher);
  }

  void read_groups() {
    s_.tensor = number("tensor-model-parallel-size", "plan.group.tensor", 1);
    s_.sequence_parallel = flag("sequence-parallel", "plan.group.sequence", "true");
    s_.context = number("context-parallel-size", "plan.group.context", 1);
    const std::string exchange = word("cp-comm-type");
    if (exchange == "p2p" || exchange == "all_gather" || exchange == "a2a")
      s_.context_type = exchange, matched("cp-comm-type", "plan.group.context_type", exchange);
    else if (!exchange.empty())
      s_.unmodeled.push_back("--cp-comm-type " + exchange);
    if (flag("use-tp-pp-dp-mapping", "plan.group.order", "tp-cp-ep-pp-dp")) s_.order = "tp-cp-ep-pp-dp";
  }

  void read_pipeline() {
    s_.ranks = number("pipeline-model-parallel-size", "pipeline ranks", 1);
    const std::optional<int> each = find_number("num-layers-per-virtual-pipeline-stage");
    if (each) {
      if (layers_ % (std::int64_t{s_.ranks} * *each) != 0)
        refuse(
            "num-layers-per-virtual-pipeline-stage",
            fmt::format("{} do not divide {} on {}", *each, pluralize(layers_, "layer"), pluralize(s_.ranks, "rank")),
            "correct the file");
      s_.chunks = layers_ / s_.ranks / *each;
      matched("num-layers-per-virtual-pipeline-stage", "run.schedule.chunks", std::to_string(s_.chunks));
    }
    s_.chunks = number("num-virtual-stages-per-pipeline-rank", "run.schedule.chunks", s_.chunks);
    s_.layout = word("pipeline-model-parallel-layout");
    if (!s_.layout.empty()) {
      matched("pipeline-model-parallel-layout", "plan.layout", s_.layout);
      const auto bars = std::count(s_.layout.begin(), s_.layout.end(), '|');
      if (s_.chunks == 1 && s_.layout.find_first_of("()*") == std::string::npos && s_.ranks > 0 &&
          (bars + 1) % s_.ranks == 0)
        s_.chunks = static_cast<int>((bars + 1) / s_.ranks);
    }
    s_.schedule = s_.chunks > 1 ? "interleaved" : "1f1b";
  }

  void read_memory() {
    if (flag("use-distributed-optimizer", "plan.shard", "optimizer")) s_.shard = "optimizer";
    const std::string strategy = word("data-parallel-sharding-strategy");
    if (take("use-megatron-fsdp") != nullptr || take("use-custom-fsdp") != nullptr) {
      s_.shard = strategy == "optim_grads" ? "gradients" : strategy == "optim" ? "optimizer" : "weights";
      if (strategy == "no_shard") s_.shard = "none";
      matched("use-megatron-fsdp", "plan.shard", s_.shard);
    }
    if (const int copies = number("num-distributed-optimizer-instances", "copies of the divided state"); copies > 1)
      s_.unmodeled.push_back(fmt::format("--num-distributed-optimizer-instances {}", copies));
    const std::string granularity = word("recompute-granularity"), method = word("recompute-method");
    const int block = find_number("recompute-num-layers").value_or(1);
    if (take("recompute-activations") != nullptr || granularity == "selective") s_.recompute = "selective";
    if (granularity == "full") s_.recompute = "layers";
    if (s_.recompute == "selective" && flash_) {
      s_.recompute.clear();
      s_.assumed.emplace_back(
          "attention is fused, so selective recomputation frees nothing and is left out; --attention-backend unfused "
          "changes that");
    }
    if (!s_.recompute.empty()) matched("recompute-granularity", "plan.recompute", s_.recompute);
    if (granularity == "full" && (block > 1 || method == "block"))
      s_.unmodeled.push_back(fmt::format("--recompute-method {} --recompute-num-layers {}", method, block));
  }

  void read_precision() {
    const std::string format = word("fp8-format"), recipe = word("fp8-recipe");
    s_.precision = "fp32";
    if (take("fp16") != nullptr) s_.precision = "fp16";
    if (take("bf16") != nullptr) s_.precision = "bf16";
    if (!format.empty()) s_.precision = recipe == "mxfp8" ? "mxfp8" : "fp8";
    if (!recipe.empty() && recipe != "mxfp8" && recipe != "delayed") s_.unmodeled.push_back("--fp8-recipe " + recipe);
    s_.matched.push_back("number format -> run.precision: " + s_.precision);
  }

  /// The launcher's processes of each node and nodes.
  void read_devices() {
    const auto either = [&](const char* a, const char* b) {
      const std::string name = given_.contains(a) ? a : b;
      const MegatronArgument* given = take(name);
      const bool is_number =
          given && !given->value.empty() && given->value.find_first_not_of("0123456789") == std::string::npos;
      return is_number ? find_number(name) : std::optional<int>();
    };
    const std::optional<int> each = either("nproc_per_node", "nproc-per-node"), nodes = either("nnodes", "nnodes");
    const std::int64_t group = std::int64_t{s_.ranks} * s_.tensor * s_.context;
    if (options_.devices > 0) return;
    if (each && nodes && std::int64_t{*each} * *nodes % group == 0) {
      s_.replicas = static_cast<int>(std::int64_t{*each} * *nodes / group);
      s_.matched.push_back(fmt::format("--nproc_per_node {} --nnodes {} -> replicas: {}", *each, *nodes, s_.replicas));
    } else {
      s_.assumed.emplace_back(
          "the number of GPUs is not known, so there is one replica; --devices NUMBER changes that");
    }
  }

  void sort_others() {
    for (const auto& [name, argument] : given_) {
      if (used_.contains(name)) continue;
      const MegatronUse use = megatron_use(name);
      std::vector<std::string>& list = use == MegatronUse::Unmodeled    ? s_.unmodeled
                                       : use == MegatronUse::WithoutUse ? s_.without_use
                                                                        : s_.unknown;
      list.push_back("--" + name + (argument.value.empty() ? "" : " " + argument.value));
    }
  }

  const std::string& file_;
  const SetupOptions& options_;
  std::map<std::string, MegatronArgument> given_;
  std::set<std::string> used_;
  TrainingSetup s_;
  int layers_ = 0, hidden_ = 0, feed_forward_ = 0;
  bool flash_ = true;
};

}  // namespace

TrainingSetup read_megatron(const std::string& text, const std::string& file, const SetupOptions& options) {
  return MegatronReader(text, file, options).read();
}

}  // namespace stagecraft
