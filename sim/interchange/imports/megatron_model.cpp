// Reads the model from Megatron-LM's arguments, as fields of the builder transformer, and how its experts are divided.

#include <cstdint>

#include <fmt/core.h>

#include "sim/config/units.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

class ModelReader {
 public:
  ModelReader(MegatronArguments& arguments, TrainingSetup& setup, const SetupOptions& options)
      : a_(arguments), s_(setup), options_(options) {}

  MegatronShape read() {
    shape_.layers = required("num-layers", "layers");
    hidden_ = required("hidden-size", "hidden");
    shape_.heads = required("num-attention-heads", "heads");
    if (a_.take("multi-latent-attention"))
      read_latent_attention();
    else
      read_heads();
    shape_.sequence = required("seq-length", "sequence");
    read_vocabulary();
    read_feed_forward();
    const std::string norm = a_.word("normalization");
    field("norm", norm == "RMSNorm" ? "rms" : "layer");
    if (!norm.empty()) note_match(s_, "normalization", "model.norm", norm == "RMSNorm" ? "rms" : "layer");
    read_positions();
    read_attention();
    if (a_.flag(s_, "disable-bias-linear", "model.bias", "false")) field("bias", "false");
    if (a_.flag(s_, "add-qkv-bias", "model.query_key_value_bias", "true")) field("query_key_value_bias", "true");
    if (a_.flag(s_, "untie-embeddings-and-output-weights", "model.tied", "false")) field("tied", "false");
    shape_.next_tokens = a_.number(s_, "mtp-num-layers", "model.next_tokens");
    if (shape_.next_tokens > 0) field("next_tokens", std::to_string(shape_.next_tokens));
    read_experts();
    return shape_;
  }

 private:
  void field(const char* name, const std::string& value) { s_.model.emplace_back(name, value); }

  int required(const std::string& name, const char* model_field) {
    const int value = a_.number(s_, name, "model." + std::string(model_field));
    if (value == 0) a_.refuse_all(fmt::format("there is no --{}", name), "add it to the file");
    field(model_field, std::to_string(value));
    return value;
  }

  void read_heads() {
    if (const int width = a_.number(s_, "kv-channels", "model.head_width")) field("head_width", std::to_string(width));
    if (a_.flag(s_, "group-query-attention", "model.key_value_heads", "num-query-groups"))
      field("key_value_heads", std::to_string(a_.number(s_, "num-query-groups", "model.key_value_heads", 1)));
    if (a_.flag(s_, "qk-layernorm", "model.query_key_norm", "true")) field("query_key_norm", "true");
  }

  /// Fallbacks come from _add_mla_args in megatron/training/arguments.py. Norms of the short vectors are part of
  /// latent attention here, and --kv-channels is not used with it.
  void read_latent_attention() {
    std::string query;
    if (const auto width = a_.find_number("q-lora-rank")) query = fmt::format("query: {}, ", *width);
    const auto width = [&](const char* name, int fallback) { return a_.find_number(name).value_or(fallback); };
    const std::string text =
        fmt::format("{{{}key_value: {}, rope: {}, nope: {}, value: {}}}", query, width("kv-lora-rank", 32),
                    width("qk-pos-emb-head-dim", 64), width("qk-head-dim", 128), width("v-head-dim", 128));
    field("latent", text);
    note_match(s_, "multi-latent-attention", "model.latent", text);
  }

  /// Megatron-LM: two thirds of four times the width, a multiple of 64, where the unit is gated.
  void read_feed_forward() {
    const bool quick = a_.flag(s_, "quick-geglu", "model.gated", "true");
    const bool gated = a_.flag(s_, "swiglu", "model.gated", "true") || quick;
    if (gated) field("gated", "true");
    feed_forward_ =
        a_.number(s_, "ffn-hidden-size", "model.feed_forward", gated ? hidden_ * 8 / 3 / 64 * 64 : 4 * hidden_);
    field("feed_forward", std::to_string(feed_forward_));
  }

  /// Megatron-LM takes a fused attention unless it is told otherwise, and before Megatron Core it had none.
  void read_attention() {
    const std::string backend = a_.word("attention-backend");
    shape_.flash_attention = software_stack(s_.software).fused_attention && backend != "unfused" && backend != "local";
    const std::string value = shape_.flash_attention ? "true" : "false";
    field("flash_attention", value);
    if (!backend.empty()) note_match(s_, "attention-backend", "model.flash_attention", value);
    if (a_.word("softmax-type") == "learnable")
      field("sinks", "true"), note_match(s_, "softmax-type", "model.sinks", "true");
    read_window();
  }

  /// "--window-size 127,0" looks back at 127 tokens and at itself; each n-th layer looks at all tokens with
  /// "--window-attn-skip-freq n". A list has a 1 for each layer with the window.
  void read_window() {
    const std::vector<std::string> sizes = a_.words("window-size");
    if (sizes.empty()) return;
    std::string_view first = sizes.front();
    const bool has_paren = first.starts_with('(');
    if (has_paren) first.remove_prefix(1);
    const std::optional<int> back = read_number(first);
    if (!back || !first.empty() || *back < 1) return s_.unmodeled.push_back(a_.written("window-size"));
    field("window", std::to_string(*back + 1));
    note_match(s_, "window-size", "model.window", std::to_string(*back + 1));
    if (!a_.has("window-attn-skip-freq")) return;
    const std::optional<int> every = full_every(a_.words("window-attn-skip-freq"));
    if (!every) return s_.unmodeled.push_back(a_.written("window-attn-skip-freq"));
    if (*every == 0) return;
    field("full_every", std::to_string(*every));
    note_match(s_, "window-attn-skip-freq", "model.full_every", std::to_string(*every));
  }

  /// The distance of layers without the window: 0 where all have it, nothing where they are not at equal distances.
  std::optional<int> full_every(const std::vector<std::string>& words) const {
    if (words.size() == 1 && std::ssize(words) != shape_.layers) {
      std::string_view rest = words.front();
      const std::optional<int> number = read_number(rest);
      return number && rest.empty() && *number > 0 ? number : std::nullopt;
    }
    int every = 0;
    for (std::size_t i = 0; i < words.size() && every == 0; ++i)
      if (words[i] == "0") every = static_cast<int>(i) + 1;
    if (std::ssize(words) != shape_.layers) return {};
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool is_full = every > 0 && (i + 1) % every == 0;
      if (words[i] != (is_full ? "0" : "1")) return {};
    }
    return every;
  }

  /// --pad-vocab-size-to is an option of Megatron-DeepSpeed.
  void read_vocabulary() {
    int size = a_.number(s_, "vocab-size", "model.vocabulary");
    bool pads = !a_.take("no-pad-vocab-size");
    if (a_.take("disable-pad-vocab-size")) pads = false;
    for (const char* padded : {"padded-vocab-size", "pad-vocab-size-to"})
      if (const int total = a_.number(s_, padded, "model.vocabulary")) size = total, pads = false;
    if (options_.vocabulary > 0) size = options_.vocabulary;
    if (size == 0) a_.refuse_all("there is no --vocab-size: the tokenizer has it", "--vocabulary NUMBER");
    field("vocabulary", std::to_string(pads ? padded_vocabulary(size) : size));
  }

  /// _vocab_size_with_padding of Megatron-LM: a multiple for each device of the tensor group.
  std::int64_t padded_vocabulary(int size) {
    constexpr int kUnit = 128;
    const char* const option = "make-vocab-size-divisible-by";
    const std::int64_t unit = a_.find_number(option).value_or(kUnit);
    const std::int64_t multiple = unit * a_.find_number("tensor-model-parallel-size").value_or(1);
    const std::int64_t padded = (size + multiple - 1) / multiple * multiple;
    if (a_.has(option)) note_match(s_, option, "model.vocabulary", std::to_string(padded));
    if (padded != size)
      s_.assumed.push_back(fmt::format("Megatron-LM pads the vocabulary of {} to {}, a multiple of {} x tensor {}",
                                       size, padded, unit, multiple / unit));
    return padded;
  }

  /// ALiBi and relative positions have no weights of the embedding; what they add to scores is not counted.
  void read_positions() {
    const std::string type = a_.word("position-embedding-type");
    const bool old_rotary = a_.take("use-rotary-position-embeddings");
    const bool absent = a_.take("no-position-embedding") && type.empty();
    const std::string positions = type == "rope" || type == "yarn" || type == "mrope" || old_rotary   ? "rotary"
                                  : absent || type == "none" || type == "relative" || type == "alibi" ? "none"
                                                                                                      : "learned";
    if (!type.empty() || old_rotary) note_match(s_, "position-embedding-type", "model.positions", positions);
    field("positions", positions);
    if (positions == "learned" &&
        a_.find_number("max-position-embeddings").value_or(shape_.sequence) != shape_.sequence)
      s_.unmodeled.push_back(a_.written("max-position-embeddings"));
  }

  void read_experts() {
    const std::optional<int> experts = a_.find_number("num-experts");
    if (!experts) return;
    const int active = a_.number(s_, "moe-router-topk", "model.experts.active", 2);
    const int width = a_.number(s_, "moe-ffn-hidden-size", "model.experts.width", feed_forward_);
    note_match(s_, "num-experts", "model.experts.count", std::to_string(*experts));
    std::string text = fmt::format("count: {}, active: {}, width: {}", *experts, active, width);
    if (const int shared = a_.find_number("moe-shared-expert-intermediate-size").value_or(0); shared > 0) {
      if (shared % width == 0) {
        text += fmt::format(", shared: {}", shared / width);
        note_match(s_, "moe-shared-expert-intermediate-size", "model.experts.shared", std::to_string(shared / width));
      } else {
        s_.unmodeled.push_back(a_.written("moe-shared-expert-intermediate-size"));
      }
    }
    if (const int dense = first_dense_layers(); dense > 0) text += fmt::format(", first_dense: {}", dense);
    text += routing();
    field("experts", "{" + text + "}");
    read_expert_groups();
  }

  /// Fields about where rows go. A router with groups of experts chooses from some groups alone for a token, and
  /// experts with a capacity and padding have as many rows whatever the router says. A router that balances them has
  /// even loads, as the model does.
  std::string routing() {
    std::string text;
    const auto add = [&](const char* option, const char* name, const std::string& value) {
      text += fmt::format(", {}: {}", name, value);
      note_match(s_, option, fmt::format("model.experts.{}", name), value);
    };
    const char* const groups = "moe-router-num-groups";
    if (const std::optional<int> active = a_.find_number("moe-router-group-topk"); active && a_.has(groups)) {
      add("moe-router-group-topk", "nodes", std::to_string(*active));
      add(groups, "groups", std::to_string(a_.find_number(groups).value_or(1)));
    } else if (a_.take(groups)) {
      s_.without_use.push_back(a_.written(groups) + " without --moe-router-group-topk");
    }
    const char* const capacity = "moe-expert-capacity-factor";
    if (a_.has(capacity) && a_.take("moe-pad-expert-input-to-capacity")) {
      std::string why;
      const std::optional<double> factor = config::parse_number(a_.word(capacity), why);
      if (!factor || !(*factor >= 1 && *factor <= kMostCapacity))
        a_.refuse(capacity, fmt::format("a capacity from 1 to {} is modeled", kMostCapacity), "correct the file");
      add(capacity, "capacity", shortest(*factor));
    }
    if (a_.take("moe-router-force-load-balancing"))
      s_.matched.emplace_back("--moe-router-force-load-balancing -> model.experts.imbalance: 1, the default");
    return text;
  }

  /// "([0]*3+[1]*58)": three dense layers and 58 with experts. Other patterns are not modeled.
  int first_dense_layers() {
    std::string pattern = a_.word("moe-layer-freq");
    std::erase_if(pattern, [](char c) { return c == '(' || c == ')' || c == ' '; });
    if (pattern.empty() || pattern == "1") return 0;
    const auto take_count = [&](std::string_view list) -> int {
      if (!pattern.starts_with(list)) return 0;
      pattern.erase(0, list.size());
      if (!pattern.starts_with('*')) return 1;
      int count = 0;
      const auto [stop, error] = from_chars(pattern.data() + 1, pattern.data() + pattern.size(), count);
      if (error != std::errc{}) return 0;
      pattern.erase(0, stop - pattern.data());
      return count;
    };
    const int dense = take_count("[0]");
    if (dense > 0 && dense < shape_.layers && take_count("+[1]") == shape_.layers - dense && pattern.empty()) {
      note_match(s_, "moe-layer-freq", "model.experts.first_dense", std::to_string(dense));
      return dense;
    }
    s_.unmodeled.push_back(a_.written("moe-layer-freq"));
    return 0;
  }

  /// Without its option the expert tensor degree is the tensor degree.
  void read_expert_groups() {
    s_.expert = a_.number(s_, "expert-model-parallel-size", "plan.group.expert", 1);
    s_.expert_tensor = a_.number(s_, "expert-tensor-parallel-size", "plan.group.expert_tensor");
    if (s_.expert_tensor == 0) {
      s_.expert_tensor = a_.find_number("tensor-model-parallel-size").value_or(1);
      if (s_.expert_tensor > 1)
        s_.assumed.push_back(fmt::format(
            "without --expert-tensor-parallel-size it is the tensor degree, so plan.group.expert_tensor is {}",
            s_.expert_tensor));
    }
    if (a_.take("moe-shared-expert-overlap"))
      s_.shared_overlap = true, note_match(s_, "moe-shared-expert-overlap", "plan.group.shared_overlap", "true");
    read_dispatcher();
  }

  /// Megatron-LM's flexible dispatcher uses DeepEP unless another library is named, and its default gathers the rows of
  /// the group on each device.
  void read_dispatcher() {
    const std::string given = a_.word("moe-token-dispatcher-type"), library = a_.word("moe-flex-dispatcher-backend");
    const std::string dispatcher = given.empty() ? "allgather" : given;
    a_.take("moe-enable-deepep");
    if (dispatcher == "flex" && library != "ncclep") {
      s_.dispatcher = "per_node";
      if (library == "hybridep")
        s_.assumed.emplace_back("HybridEP is taken as DeepEP: rows cross to another node once and are copied there");
    } else {
      s_.dispatcher = dispatcher == "allgather" ? "allgather" : "alltoall";
    }
    if (!given.empty() && library != "ncclep")
      return note_match(s_, "moe-token-dispatcher-type", "plan.group.dispatcher", s_.dispatcher);
    if (s_.expert == 1 && s_.expert_tensor == 1) return;
    if (given.empty())
      return s_.assumed.push_back(
          "without --moe-token-dispatcher-type it is allgather, so plan.group.dispatcher is allgather");
    s_.unmodeled.push_back("--moe-flex-dispatcher-backend ncclep");
    s_.assumed.emplace_back("ncclep is not modeled, and plan.group.dispatcher: alltoall is simulated in its place");
  }

  static constexpr int kMostCapacity = 1000;

  MegatronArguments& a_;
  TrainingSetup& s_;
  const SetupOptions& options_;
  MegatronShape shape_;
  int hidden_ = 0, feed_forward_ = 0;
};

}  // namespace

MegatronShape read_megatron_model(MegatronArguments& arguments, TrainingSetup& setup, const SetupOptions& options) {
  return ModelReader(arguments, setup, options).read();
}

}  // namespace stagecraft
