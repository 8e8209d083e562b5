// What torchtitan's main branch of 2026-08-21 (b5bcd76) has in place of the keys of 0.2.2, and the values of its
// published configurations (torchtitan/config/configs.py, torchtitan/models/*/config_registry.py), restated.

#include "sim/interchange/imports/torchtitan_main.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {
namespace {

/// Keys of 0.2.2, and what main has instead: another key for the same value, or one whose value means something else.
struct MovedKey {
  const char *old, *now;
  bool same_value = false;
};
constexpr MovedKey kMovedKeys[] = {
    {"training.local_batch_size", "training.num_tokens_per_microbatch_per_dp_rank"},
    {"training.global_batch_size", "training.num_tokens_per_train_step"},
    {"training.seq_len", "training.max_context_length", true},
    {"parallelism.pipeline_parallel_microbatch_size", "parallelism.num_pp_microbatches"},
    {"parallelism.enable_async_tensor_parallel", "compile.enable_async_tensor_parallel", true},
    {"parallelism.expert_tensor_parallel_degree", ""},
    {"parallelism.context_parallel_rotate_method", ""},
    {"parallelism.expert_parallel_comm_backend", "model_registry(moe_comm_backend=...) of a Python file"},
    {"activation_checkpoint.mode", "activation-checkpoint:full, :selective or :none"},
    {"activation_checkpoint.selective_ac_option", "activation-checkpoint:selective"},
    {"model.converters", "model_registry(converters=...) of a Python file"}};

/// Published configurations. The model and recomputation have keys of 0.2.2.
constexpr std::pair<const char*, const char*> kPublished[] = {
    {"llama3_8b",
     "model.name=llama3 model.flavor=8B training.num_tokens_per_microbatch_per_dp_rank=8192 "
     "training.max_context_length=8192"},
    {"llama3_8b_mxfp8",
     "model.name=llama3 model.flavor=8B model.converters=quantize.linear.mx "
     "training.num_tokens_per_microbatch_per_dp_rank=8192 training.max_context_length=8192 compile.enable=true "
     "compile.components=model"},
    {"llama3_70b",
     "model.name=llama3 model.flavor=70B training.num_tokens_per_microbatch_per_dp_rank=65536 "
     "training.max_context_length=8192 parallelism.tensor_parallel_degree=8 activation_checkpoint.mode=full"},
    {"llama3_405b",
     "model.name=llama3 model.flavor=405B model.converters=quantize.linear.float8 "
     "training.num_tokens_per_microbatch_per_dp_rank=16384 training.max_context_length=8192 "
     "parallelism.tensor_parallel_degree=8 activation_checkpoint.mode=full compile.enable=true "
     "compile.enable_async_tensor_parallel=true"},
    {"qwen3_32b",
     "model.name=qwen3 model.flavor=32B training.num_tokens_per_microbatch_per_dp_rank=8192 "
     "training.max_context_length=4096 activation_checkpoint.mode=full"},
    {"qwen3_30b_a3b",
     "model.name=qwen3 model.flavor=30B-A3B training.num_tokens_per_microbatch_per_dp_rank=8192 "
     "training.max_context_length=4096 activation_checkpoint.mode=full"},
    {"deepseek_v3_671b",
     "model.name=deepseek_v3 model.flavor=671B training.num_tokens_per_microbatch_per_dp_rank=16384 "
     "training.max_context_length=4096 training.disable_cuda_graphs=true parallelism.expert_parallel_degree=2 "
     "parallelism.pipeline_parallel_schedule=Interleaved1F1B compile.enable=true compile.components=loss"},
    {"deepseek_v3_671b_float8",
     "model.name=deepseek_v3 model.flavor=671B model.converters=quantize.linear.float8 "
     "training.num_tokens_per_microbatch_per_dp_rank=16384 training.max_context_length=4096 "
     "training.disable_cuda_graphs=true parallelism.expert_parallel_degree=2 "
     "parallelism.pipeline_parallel_schedule=Interleaved1F1B compile.enable=true compile.components=loss"}};

const MovedKey* moved_key(std::string_view key) {
  const auto moved =
      std::find_if(std::begin(kMovedKeys), std::end(kMovedKeys), [&](const MovedKey& m) { return key == m.old; });
  return moved == std::end(kMovedKeys) ? nullptr : moved;
}

}  // namespace

Json torchtitan_option(const std::string& text) {
  if (text == "True" || text == "true") return Json(true);
  if (text == "False" || text == "false") return Json(false);
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  if (const std::optional<int> number = read_number(rest); number && rest.empty())
    return Json(negative ? -*number : *number);
  return Json(text);
}

std::map<std::string, TomlValue> published_torchtitan_values(const std::string& config) {
  std::map<std::string, TomlValue> values;
  for (const auto& [name, text] : kPublished)
    if (config == name)
      for (const std::string& word : split(text, ' ')) {
        const std::size_t at = word.find('=');
        const std::string key = word.substr(0, at);
        const Json value = torchtitan_option(word.substr(at + 1));
        const bool is_list = key == "compile.components" || key == "model.converters";
        values[key] = {is_list ? Json(Json::Array{value}) : value, 0};
      }
  return values;
}

std::string torchtitan_key_of_main(const std::string& key) {
  const MovedKey* moved = moved_key(key);
  const std::string now = moved ? moved->now : "";
  return now.empty() || now.find_first_of(" :") != std::string::npos ? key : now;
}

bool is_older_torchtitan_key(std::string_view key) { return moved_key(key) != nullptr; }

void check_keys_of_main(const std::map<std::string, TomlValue>& values, const std::string& file,
                        std::string_view prefix) {
  std::vector<Diagnostic> problems;
  const auto refuse = [&](const std::string& key, int line, std::string message, std::string help) {
    problems.push_back({{file, line, 1},
                        std::string(prefix) + key,
                        refused_by(torchtitan_rules(), find_rule(torchtitan_rules(), "keys")) + message,
                        std::move(help),
                        "keys"});
  };
  for (const auto& [key, value] : values) {
    if (const MovedKey* moved = moved_key(key))
      refuse(key, value.line, "releases since 2026-08-20 have no such key",
             *moved->now == '\0' ? "leave it out" : std::string(moved->same_value ? prefix : "") + moved->now);
    else if (const std::optional<std::string> help = help_for_unknown_key(key, true))
      refuse(key, value.line, "there is no such key", *help);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::map<std::string, TomlValue> as_keys_of_toml(std::map<std::string, TomlValue> values, const std::string& file,
                                                 bool has_defaults) {
  for (const MovedKey& m : kMovedKeys)
    if (const auto entry = values.find(m.now); m.same_value && entry != values.end()) {
      values[m.old] = entry->second;
      values.erase(entry);
    }
  const auto refuse = [&](const char* key, int line, std::string message, std::string help) {
    throw InputError({{{file, line, line > 0 ? 1 : 0}, key, std::move(message), std::move(help), "import"}});
  };
  /// A whole number. Main derives the tokens of a step from the others where they are -1.
  const auto take = [&](const char* key) -> std::optional<TomlValue> {
    const auto entry = values.find(key);
    if (entry == values.end()) return {};
    TomlValue value = entry->second;
    values.erase(entry);
    const bool is_derived = value.value == Json(-1) && std::string_view(key) == "training.num_tokens_per_train_step";
    if (!value.value.is_whole() || (value.value.number() < 1 && !is_derived))
      refuse(key, value.line, "this is no whole number from 1 on", "correct the file");
    return value;
  };
  if (has_defaults) {
    values.try_emplace("training.seq_len", TomlValue{Json(2048), 0});
    values.try_emplace("training.num_tokens_per_microbatch_per_dp_rank", TomlValue{Json(16384), 0});
    if (values.try_emplace("activation_checkpoint.mode", TomlValue{Json("selective"), 0}).second)
      values["activation_checkpoint.selective_ac_option"] = {Json("op"), 0};
  }
  // A rank takes all tokens of its sequences in a pass.
  const auto length = values.find("training.seq_len");
  const double each = length == values.end() || !length->second.value.is_number() ? 0 : length->second.value.number();
  const auto samples = [&](const char* key, const char* old) {
    const auto tokens = take(key);
    if (!tokens || each <= 0 || tokens->value.number() < 0) return;
    if (std::fmod(tokens->value.number(), each) != 0)
      refuse(key, tokens->line, fmt::format("{} tokens are no whole sequences of {}", tokens->value.number(), each),
             "a multiple of training.max_context_length; packed sequences are not read here");
    values[old] = {Json(static_cast<int>(std::min(tokens->value.number() / each, 2e9))), tokens->line};
  };
  samples("training.num_tokens_per_microbatch_per_dp_rank", "training.local_batch_size");
  samples("training.num_tokens_per_train_step", "training.global_batch_size");
  const auto micro_batches = take("parallelism.num_pp_microbatches");
  const auto ranks = values.find("parallelism.pipeline_parallel_degree");
  const auto local = values.find("training.local_batch_size");
  if (local == values.end() || ranks == values.end() || ranks->second.value == Json(1)) return values;
  const double batch = local->second.value.number();
  const double count = micro_batches ? micro_batches->value.number() : 1;
  const int line = micro_batches ? micro_batches->line : local->second.line;
  values["parallelism.pipeline_parallel_microbatch_size"] = {Json(static_cast<int>(batch)), line};
  values["training.local_batch_size"] = {Json(static_cast<int>(std::min(batch * count, 2e9))), line};
  return values;
}

}  // namespace stagecraft
