// Writes a published recipe as arguments of Megatron-LM: its model, division, number format and overlap.

#include "sim/interchange/bridge_recipe.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/layout_letters.hpp"

namespace stagecraft {

/// "[a,b]" and "'a'" as words.
std::string plain_value(const std::string& value) {
  std::string text;
  for (const char c : value)
    if (c == ',')
      text += ' ';
    else if (c != '[' && c != ']' && c != '"' && c != '\'')
      text += c;
  return text;
}

ArgumentList::ArgumentList(const std::string& text) {
  for (const std::string& word : split(text, ' ')) {
    if (word.starts_with("--"))
      arguments_.emplace_back(word.substr(2), "");
    else if (!word.empty() && !arguments_.empty())
      arguments_.back().second += (arguments_.back().second.empty() ? "" : " ") + word;
  }
}

void ArgumentList::remove(const std::string& name) {
  erase_if(arguments_, [&](const auto& argument) { return argument.first == name; });
}

void ArgumentList::set(const std::string& name, const std::string& values) {
  remove(name);
  arguments_.emplace_back(name, values);
}

std::optional<std::string> ArgumentList::find(const std::string& name) const {
  for (const auto& [given, values] : arguments_)
    if (given == name) return plain_value(values);
  return {};
}

std::string ArgumentList::text() const {
  std::string text;
  for (const auto& [name, values] : arguments_)
    text += fmt::format("{}--{}{}{}", text.empty() ? "" : " ", name, values.empty() ? "" : " ", values);
  return text;
}

std::span<const BridgeFormat> bridge_formats() {
  static constexpr BridgeFormat kFormats[] = {
      {"bf16", "bf16_mixed", "--bf16"},
      {"fp16", "fp16_mixed", "--fp16"},
      {"fp8", "bf16_with_fp8_current_scaling_mixed", "--bf16 --fp8-format hybrid --fp8-recipe tensorwise"},
      {"", "bf16_with_fp8_delayed_scaling_mixed", "--bf16 --fp8-format hybrid --fp8-recipe delayed"},
      {"", "bf16_with_fp8_subchannel_scaling_mixed", "--bf16 --fp8-format hybrid --fp8-recipe blockwise"},
      {"mxfp8", "bf16_with_mxfp8_mixed", "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8"},
      {"nvfp4", "bf16_with_nvfp4_mixed", "--bf16 --fp4-format e2m1 --fp4-recipe nvfp4"}};
  return kFormats;
}

std::span<const char* const> format_options() {
  static constexpr const char* kOptions[] = {"bf16", "fp16", "fp8-format", "fp8-recipe", "fp4-format", "fp4-recipe"};
  return kOptions;
}

bool is_of_bridge(const Recipe& r) { return r.source.ends_with("_config"); }
std::string bridge_name(const Recipe& r) { return split(r.source, ' ').back(); }

namespace {

std::string file_of_models() {
  for (const std::string& folder : folders(FileKind::Scenario))
    if (std::string file = folder + "/recipes/models.txt"; std::filesystem::is_regular_file(file)) return file;
  throw InputError("the library has no recipes/models.txt", "install the folder scenarios/recipes");
}

/// The shape of a model of recipes.csv.
std::string arguments_of_model(const std::string& model) {
  const std::string file = file_of_models();
  for (const std::string& line : split(read_file(file), '\n'))
    if (const std::size_t bar = line.find(" | "); bar != std::string::npos && line.substr(0, bar) == model)
      return line.substr(bar + 3);
  throw InputError(fmt::format("{} has no model '{}'", file, model), "a line with its arguments");
}

/// How the layers of a recipe are divided, in the shortest words of Megatron-LM.
std::string division_of(const Recipe& r) {
  if (r.pipeline * r.chunks == 1) return "";
  std::vector<std::ptrdiff_t> counts;
  for (const std::string& stage :
       stages_of_layout(r.layout, [&](std::size_t, const std::string& why) { throw InputError(r.name + ": " + why); }))
    counts.push_back(std::count(stage.begin(), stage.end(), 't'));
  const bool alike = std::all_of(counts.begin() + 1, counts.end() - 1, [&](auto n) { return n == counts[1]; });
  const std::string chunks = r.chunks > 1 ? fmt::format(" --num-virtual-stages-per-pipeline-rank {}", r.chunks) : "";
  const bool has_module = r.layout.find('m') != std::string::npos;
  if (!has_module && alike && counts.front() == counts[1] && counts.back() == counts[1]) return chunks;
  if (!has_module && alike && counts.size() > 2 && counts.front() == counts[1] - 1 && counts.back() == counts[1] - 1)
    return " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split" + chunks;
  return fmt::format(" --pipeline-model-parallel-layout '{}'", r.layout);
}

std::string recomputation_words(const Recipe& r) {
  const std::vector<std::string> words = split(r.recompute, ' ');
  if (words.front() == "full")
    return fmt::format(" --recompute-granularity full --recompute-method {} --recompute-num-layers {}", words[1],
                       words[2]);
  if (words.front() != "selective") return "";
  return " --recompute-granularity selective --recompute-modules " + r.recompute.substr(10);
}

/// A remark "offload 20 layers" or "offload core_attn attn_proj".
std::string offload_words(const Recipe& r) {
  constexpr std::string_view kWord = "offload ", kLayers = " layers";
  const std::size_t at = r.remarks.find(kWord);
  if (at == std::string::npos) return "";
  const std::string what = r.remarks.substr(at + kWord.size(), r.remarks.find(';', at) - at - kWord.size());
  if (what.ends_with(kLayers)) return " --cpu-offloading-num-layers " + what.substr(0, what.size() - kLayers.size());
  return " --fine-grained-activation-offloading --offload-modules " + what;
}

std::string expert_words(const Recipe& r) {
  if (r.experts == 0) return "";
  std::string text =
      fmt::format(" --expert-model-parallel-size {} --expert-tensor-parallel-size {}", r.expert, r.expert_tensor);
  const std::vector<std::string> words = split(r.dispatcher, ' ');
  text += " --moe-token-dispatcher-type " + words.front();
  if (words.size() > 1) text += " --moe-flex-dispatcher-backend " + words[1];
  return text;
}

}  // namespace

std::string megatron_words(const Recipe& r) {
  std::string text =
      arguments_of_model(r.model) +
      " --swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights "
      "--attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion";
  if (r.model != "gpt-oss-120b") text += " --disable-bias-linear";
  if (r.layout.find('m') != std::string::npos) text += " --mtp-num-layers 1";
  text += fmt::format(" --seq-length {} --micro-batch-size {} --global-batch-size {}", r.sequence, r.micro_batch_size,
                      r.global_batch);
  text += fmt::format(" --tensor-model-parallel-size {} --pipeline-model-parallel-size {}{}", r.tensor, r.pipeline,
                      division_of(r));
  if (r.tensor > 1) text += " --sequence-parallel";
  if (r.context > 1) text += fmt::format(" --context-parallel-size {}", r.context);
  if (!r.context_type.empty()) text += " --cp-comm-type " + r.context_type;
  text += expert_words(r);
  for (const auto& [precision, bridge, options] : bridge_formats())
    if (r.precision == precision) text += std::string(" ") + options;
  if (r.gradient_bytes == 2) text += " --grad-reduce-in-bf16";
  text += recomputation_words(r) + offload_words(r);
  text += r.shard == "optimizer" ? " --use-distributed-optimizer"
                                 : fmt::format(
                                       " --use-megatron-fsdp --ckpt-format fsdp_dtensor "
                                       "--data-parallel-sharding-strategy {}",
                                       r.shard == "gradients" ? "optim_grads" : "optim_grads_params");
  for (const auto& [feature, option] : {std::pair{"tensor", "tp-comm-overlap"},
                                        {"gradients", "overlap-grad-reduce"},
                                        {"weights", "overlap-param-gather"},
                                        {"experts", "overlap-moe-expert-parallel-comm"},
                                        {"weight_gradients", "delay-wgrad-compute"}})
    if (std::find(r.overlap.begin(), r.overlap.end(), feature) != r.overlap.end()) text += fmt::format(" --{}", option);
  if (r.remarks.find("gather in the optimizer step") != std::string::npos)
    text += " --overlap-param-gather-with-optimizer-step --ckpt-format torch";
  if (r.remarks.find("embedding gradients deferred") != std::string::npos) text += " --defer-embedding-wgrad-compute";
  return text;
}

}  // namespace stagecraft
