// Reads the command line of torchtitan releases that are configured in Python as keys and values of its older TOML
// files; torchtitan.cpp calls it.

#include "sim/interchange/imports/torchtitan_command.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/torchtitan_main.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kRecomputation = "activation-checkpoint:";

/// The option at a word: its key and its value, which may be the next word. tyro takes "-" for "_", and
/// "--section.no-flag".
std::pair<std::string, std::string> option_at(const ShellCommand& command, std::size_t& at) {
  const std::string& word = command[at].text;
  const std::size_t equals = word.find('=');
  std::string key = word.substr(2, equals == std::string::npos ? equals : equals - 2);
  std::replace(key.begin(), key.end(), '-', '_');
  if (equals != std::string::npos) return {key, word.substr(equals + 1)};
  if (const std::size_t no = key.find(".no_"); no != std::string::npos) return {key.erase(no + 1, 3), "false"};
  const bool has_value = at + 1 < command.size() && !command[at + 1].text.starts_with("--") &&
                         !command[at + 1].text.starts_with(kRecomputation);
  return {key, has_value ? command[++at].text : "true"};
}

/// The first word after the program, which a launcher and its options may come before.
std::size_t after_program(const ShellCommand& command) {
  std::size_t after = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    if (word == "-m" || word == "--module") {
      const bool is_program = i + 1 < command.size() && command[i + 1].text.starts_with("torchtitan.");
      if (is_program) after = i + 2;
    } else if (word == "--config" ||
               (word.starts_with("--") && word.substr(0, word.find('=')).find('.') != std::string::npos)) {
      break;
    } else if (word.ends_with(".py") || word.ends_with(".sh")) {
      after = i + 1;
    }
  }
  return after;
}

/// The number after an option of torchrun; 0 where what is given is none, as in 2:4.
std::optional<int> launcher_number(const ShellCommand& command, std::size_t end, std::string_view name) {
  for (std::size_t i = 0; i < end; ++i) {
    std::string word = command[i].text;
    const std::size_t equals = word.find('=');
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : i + 1 < end               ? command[i + 1].text
                                                          : "";
    word.resize(std::min(equals, word.size()));
    std::replace(word.begin(), word.end(), '-', '_');
    std::string_view rest = value;
    if (word != name) continue;
    const std::optional<int> number = read_number(rest);
    return number && rest.empty() ? *number : 0;
  }
  return {};
}

/// "activation-checkpoint:full" as the keys of 0.2.2.
void choose_recomputation(const std::string& name, int line, const std::string& file,
                          std::map<std::string, TomlValue>& values) {
  if (name != "full" && name != "selective" && name != "none" && name != "memory-budget")
    throw InputError({{{file, line, 1},
                       "activation-checkpoint",
                       fmt::format("there is no '{}'", name),
                       "full, selective, none or memory-budget",
                       "import"}});
  values["activation_checkpoint.mode"] = {Json(name == "memory-budget" ? "memory_budget" : name), line};
  values.erase("activation_checkpoint.selective_ac_option");
  if (name == "selective") values["activation_checkpoint.selective_ac_option"] = {Json("op"), line};
}

}  // namespace

bool is_torchtitan_command(const std::string& text) {
  return text.find("--module") != std::string::npos && text.find("--config") != std::string::npos;
}

int launched_gpus(const ShellScript& script) {
  constexpr std::int64_t kMost = 1'000'000;
  for (const ShellCommand& command : script.commands) {
    const std::size_t end = after_program(command);
    const std::int64_t each = launcher_number(command, end, "__nproc_per_node").value_or(0),
                       nodes = launcher_number(command, end, "__nnodes").value_or(1);
    if (each > 0 && nodes > 0) return static_cast<int>(std::min(each * nodes, kMost));
  }
  return 0;
}

std::map<std::string, TomlValue> read_torchtitan_command(const ShellScript& script, const std::string& file) {
  std::map<std::string, TomlValue> given, recomputation;
  for (const ShellCommand& command : script.commands)
    for (std::size_t i = after_program(command); i < command.size(); ++i) {
      const int line = command[i].line;
      if (command[i].text.starts_with(kRecomputation))
        choose_recomputation(command[i].text.substr(kRecomputation.size()), line, file, recomputation);
      if (!command[i].text.starts_with("--")) continue;
      const auto [key, value] = option_at(command, i);
      // A list has a word for each element, and of these the first stands for it.
      given[key] = {key == "compile.components" ? Json(Json::Array{Json(value)}) : torchtitan_option(value), line};
      while (key == "compile.components" && i + 1 < command.size() && !command[i + 1].text.starts_with("--") &&
             !command[i + 1].text.starts_with(kRecomputation))
        given[key].value.push_back(Json(command[++i].text));
    }
  check_keys_of_main(given, file, "--");
  const auto config = given.find("config");
  const std::string name = config != given.end() && config->second.value.is_string() ? config->second.value.text() : "";
  std::map<std::string, TomlValue> values = published_torchtitan_values(name);
  const bool is_known = !values.empty();
  if (!recomputation.empty()) values.erase("activation_checkpoint.selective_ac_option");
  for (const auto* more : {&given, &recomputation})
    for (const auto& [key, value] : *more) values[key] = value;
  values.erase("module"), values.erase("config");
  return as_keys_of_toml(std::move(values), file, is_known);
}

}  // namespace stagecraft
