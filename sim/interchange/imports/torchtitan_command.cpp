// Reads the command line of torchtitan releases that are configured in Python as keys and values of its older TOML
// files; torchtitan.cpp calls it.

#include "sim/interchange/imports/torchtitan_command.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/shell_words.hpp"
#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {
namespace {

/// Keys of 0.2.2, and what main has instead: another key for the same value, or one whose value means something else.
struct MovedKey {
  const char *old, *now;
  bool same_value;
};
constexpr MovedKey kMovedKeys[] = {
    {"training.local_batch_size", "training.num_tokens_per_microbatch_per_dp_rank", false},
    {"training.global_batch_size", "training.num_tokens_per_train_step", false},
    {"training.seq_len", "training.max_context_length", true},
    {"parallelism.pipeline_parallel_microbatch_size", "parallelism.num_pp_microbatches", false},
    {"parallelism.enable_async_tensor_parallel", "compile.enable_async_tensor_parallel", true},
    {"parallelism.expert_tensor_parallel_degree", "", false}};

/// The configurations of main, and the flavors of 0.2.2.
constexpr std::pair<const char*, std::pair<const char*, const char*>> kFlavorsOfMain[] = {
    {"llama3_8b", {"llama3", "8B"}},
    {"llama3_70b", {"llama3", "70B"}},
    {"llama3_405b", {"llama3", "405B"}},
    {"qwen3_32b", {"qwen3", "32B"}},
    {"qwen3_30b_a3b", {"qwen3", "30B-A3B"}},
    {"qwen3_235b_a22b", {"qwen3", "235B-A22B"}},
    {"deepseek_v3_671b", {"deepseek_v3", "671B"}}};

Json option_value(const std::string& text) {
  if (text == "True" || text == "true") return Json(true);
  if (text == "False" || text == "false") return Json(false);
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  if (const std::optional<int> number = read_number(rest); number && rest.empty())
    return Json(negative ? -*number : *number);
  return Json(text);
}

/// Micro-batches and tokens as the samples that 0.2.2 counts. A rank takes all tokens of its sequences.
void add_samples(std::map<std::string, TomlValue>& values) {
  const auto take = [&](const char* key) -> std::optional<TomlValue> {
    const auto entry = values.find(key);
    if (entry == values.end()) return {};
    TomlValue value = entry->second;
    values.erase(entry);
    return value;
  };
  const auto length = values.find("training.seq_len");
  const double each = length == values.end() ? 0 : length->second.value.number();
  const auto samples = [&](const char* key, const char* old) {
    const auto tokens = take(key);
    if (!tokens || each <= 0 || !tokens->value.is_number() || tokens->value.number() < each) return;
    values[old] = {Json(static_cast<int>(tokens->value.number() / each)), tokens->line};
  };
  samples("training.num_tokens_per_microbatch_per_dp_rank", "training.local_batch_size");
  samples("training.num_tokens_per_train_step", "training.global_batch_size");
  const auto micro_batches = take("parallelism.num_pp_microbatches");
  const auto local = values.find("training.local_batch_size");
  if (!micro_batches || !micro_batches->value.is_whole()) return;
  // A micro-batch has the tokens of one pass of a rank through the pipeline.
  const double batch = local == values.end() ? 1 : local->second.value.number();
  values["parallelism.pipeline_parallel_microbatch_size"] = {Json(static_cast<int>(batch)), micro_batches->line};
  values["training.local_batch_size"] = {Json(static_cast<int>(batch * micro_batches->value.number())),
                                         micro_batches->line};
}

}  // namespace

bool is_torchtitan_command(const std::string& text) {
  return text.find("--module ") != std::string::npos && text.find("--config ") != std::string::npos;
}

std::map<std::string, TomlValue> read_torchtitan_command(const std::string& text, const std::string& file) {
  std::map<std::string, TomlValue> values;
  std::vector<Diagnostic> problems;
  for (const ShellCommand& command : read_shell(text).commands)
    for (std::size_t i = 0; i < command.size(); ++i) {
      const std::string& word = command[i].text;
      if (!word.starts_with("--")) continue;
      const std::size_t equals = word.find('=');
      std::string key = word.substr(2, equals == std::string::npos ? equals : equals - 2), value = "true";
      const int line = command[i].line;
      if (equals != std::string::npos)
        value = word.substr(equals + 1);
      else if (i + 1 < command.size() && !command[i + 1].text.starts_with("--"))
        value = command[++i].text;
      const auto moved =
          std::find_if(std::begin(kMovedKeys), std::end(kMovedKeys), [&](const MovedKey& m) { return key == m.old; });
      if (moved != std::end(kMovedKeys))
        problems.push_back({{file, line, 1},
                            "--" + key,
                            refused_by(torchtitan_rules(), find_rule(torchtitan_rules(), "keys")) +
                                "releases since 2026-02-23 have no such key",
                            *moved->now == '\0' ? "leave it out" : fmt::format("--{}", moved->now),
                            "keys"});
      for (const MovedKey& m : kMovedKeys)
        if (key == m.now && m.same_value) key = m.old;
      values[key] = {option_value(value), line};
    }
  if (!problems.empty()) throw InputError(std::move(problems));
  const auto config = values.find("config");
  for (const auto& [name, flavor] : kFlavorsOfMain)
    if (config != values.end() && config->second.value == Json(name)) {
      const int line = config->second.line;
      values["model.name"] = {Json(flavor.first), line}, values["model.flavor"] = {Json(flavor.second), line};
    }
  values.erase("module"), values.erase("config");
  add_samples(values);
  return values;
}

}  // namespace stagecraft
