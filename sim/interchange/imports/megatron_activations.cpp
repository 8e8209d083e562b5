// Reads from Megatron-LM's arguments what a GPU does not keep from forward to backward: what is recomputed, and what is
// in the memory of hosts.

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "sim/config/units.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/offloaded_arrays.hpp"
#include "sim/cost/stage_shape.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

/// Modules of layers that no model here has.
constexpr std::string_view kOtherModules[] = {"gdn_norm_out", "gdp_in_proj", "gdp_qkv", "mhc"};

/// Modules of selective recomputation in the order of their list; the inside of attention where none is named. What a
/// fused attention keeps has nothing to free.
std::string recomputed_modules(MegatronArguments& a, TrainingSetup& s, bool fused_attention) {
  std::vector<std::string> named = a.words("recompute-modules");
  if (named.empty()) named.emplace_back("core_attn");
  if (a.take("moe-layer-recompute")) named.emplace_back("moe");
  Recomputation modules = Recomputation::None;
  for (const std::string& name : named) {
    const std::optional<Recomputation> module = recomputation_module(name);
    const bool is_other =
        std::find(std::begin(kOtherModules), std::end(kOtherModules), name) != std::end(kOtherModules);
    if (!module && !is_other)
      a.break_rule("recompute-modules", "recompute-modules", fmt::format("there is no module '{}'", name),
                   suggest(name, recomputation_modules()));
    if (is_other)
      s.unmodeled.push_back("--recompute-modules " + name);
    else if (*module == Recomputation::Selective && fused_attention)
      s.assumed.push_back(
          fmt::format("attention is fused, so selective recomputation {}frees nothing and is left out; "
                      "--attention-backend unfused changes that",
                      named.size() > 1 ? "of core_attn " : ""));
    else
      modules = modules | *module;
  }
  return modules == Recomputation::None ? "" : to_text(modules);
}

/// States of the optimizer that hosts keep and update.
std::string offloaded_states(MegatronArguments& a, TrainingSetup& s) {
  if (!a.take("optimizer-cpu-offload")) return {};
  const double share = a.find_share("optimizer-offload-fraction").value_or(1);
  const bool beside = a.take("overlap-cpu-optimizer-d2h-h2d");
  a.take("use-precision-aware-optimizer");
  const std::string text = fmt::format("optimizer: {{share: {}, beside: {}}}", shortest(share), beside);
  note_match(s, "optimizer-cpu-offload", "plan.offload", "{" + text + "}");
  return text;
}

/// Whole layers, which are all alike but for the ends of the model: the share of what the only stage keeps.
std::string offloaded_layers(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  const char* const option = "cpu-offloading-num-layers";
  if (!a.has(option) || a.word(option) == "0") return {};
  const int layers = a.number(s, option, "plan.offload.activations, as a share of all layers");
  if (s.ranks > 1 || layers >= shape.layers) return {};  // Megatron-LM refuses it.
  return fmt::format("activations: {} %", shortest(100.0 * layers / shape.layers));
}

/// Inputs of modules of each layer. Of several modules Megatron-LM takes the first part in the order of the forward,
/// which is a share of all of them here, and it lets no forward wait.
std::string offloaded_modules(MegatronArguments& a, TrainingSetup& s) {
  const char* const option = "offload-modules";
  if (!a.take("fine-grained-activation-offloading")) {
    if (a.has(option))
      s.without_use.push_back(a.take_written(option) + " without --fine-grained-activation-offloading");
    return {};
  }
  const bool has_experts = a.has("num-experts");
  std::string modules;
  for (const std::string& name : a.words(option)) {
    const std::vector<std::string>& names = offload_modules();
    if (is_module_of_experts(name) && !has_experts)
      s.without_use.push_back(fmt::format("--{} {} without experts", option, name));
    else if (std::find(names.begin(), names.end(), name) == names.end())
      s.unmodeled.push_back(fmt::format("--{} {}", option, name));
    else
      modules += (modules.empty() ? "" : ", ") + name;
  }
  if (modules.empty()) return {};
  if (s.recompute == "layers") {
    s.without_use.push_back(
        fmt::format("--{} with --recompute-granularity full, which keeps no inputs of modules", option));
    return {};
  }
  const double share = a.find_share("activation-offload-fraction").value_or(1);
  std::string text = fmt::format("activations: {} %, modules: [{}]", shortest(100 * share), modules);
  if (s.ranks > 1) text += ", late: false";
  const int delta = a.find_number("delta-offload-bytes-across-pp-ranks", std::numeric_limits<int>::max()).value_or(0);
  if (delta > 0) text += fmt::format(", less: {} B", delta);
  note_match(s, option, "plan.offload", "{" + text + "}");
  return text;
}

}  // namespace

void read_megatron_offload(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape,
                           const SetupOptions& options) {
  TrainingSetup read = s;
  std::vector<std::string> parts, flags;
  const auto add = [&](std::string part, std::string flag) {
    if (!part.empty()) parts.push_back(std::move(part)), flags.push_back(std::move(flag));
  };
  add(offloaded_layers(a, read, shape), "--cpu-offloading-num-layers");
  if (std::string modules = offloaded_modules(a, read); !modules.empty())
    add(std::move(modules), "--fine-grained-activation-offloading " + a.written("offload-modules"));
  add(offloaded_states(a, read), "--optimizer-cpu-offload");
  const std::optional<Cluster> cluster = parts.empty() ? std::nullopt : cluster_named_by(options);
  if (!parts.empty() && (!cluster || cluster->memories.empty())) {
    for (const std::string& flag : flags) s.unmodeled.push_back(flag + ", as the cluster has no `host`");
    return;
  }
  s = std::move(read);
  if (!parts.empty()) s.offload = "{" + join(parts) + "}";
}

/// Until 2022 --checkpoint-activations was the recomputation of whole layers, and --recompute-method alone for some
/// months after it.
void read_megatron_recomputation(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  std::string granularity = a.word("recompute-granularity");
  const std::string method = a.word("recompute-method");
  const int block = a.find_number("recompute-num-layers").value_or(1);
  const bool old = a.take("checkpoint-activations"), deepspeed = a.take("deepspeed-activation-checkpointing");
  if (granularity.empty() && (old || !method.empty())) granularity = "full";
  if (deepspeed && !old) s.unmodeled.emplace_back("--deepspeed-activation-checkpointing");
  const bool selective = a.take("recompute-activations") || granularity == "selective" || a.has("moe-layer-recompute");
  const char* const modules = "recompute-modules";
  const bool names_modules = a.has(modules);
  if (selective) s.recompute = recomputed_modules(a, s, shape.flash_attention);
  if (!selective && a.take(modules)) s.without_use.push_back(a.written(modules));
  if (granularity == "full") s.recompute = "layers";
  if (!s.recompute.empty())
    note_match(s,
               old                          ? "checkpoint-activations"
               : selective && names_modules ? modules
                                            : "recompute-granularity",
               "plan.recompute", s.recompute);
  if (granularity == "full" && method == "block") {
    s.recompute_layers = block;
    note_match(s, "recompute-num-layers", "plan.recompute_layers", std::to_string(block));
  } else if (granularity == "full" && block > 1) {  // Groups of layers run again as one, so fewer inputs stay.
    s.unmodeled_memory.push_back(fmt::format("--recompute-method {} --recompute-num-layers {}", method, block));
  }
}

}  // namespace stagecraft
