// `stagecraft completion`: writes completion scripts for bash, zsh and fish, with options of the catalog of commands
// and names of catalogs and library files.

#include <algorithm>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

using Strings = std::vector<std::string>;

Strings with_all(Strings names) {
  names.emplace_back("all");
  return names;
}

Strings simulator_names() {
  Strings names;
  for (const BackendDef* b : backends::catalog())
    if (b->clock == Clock::Simulated) names.emplace_back(b->name);
  return names;
}

/// "run.schedule=1f1b" and so on, for each path whose values are names of a catalog or of files.
Strings assignments() {
  Strings words;
  const auto add = [&](const std::string& path, const Strings& names) {
    for (const std::string& name : names) words.push_back(path + "=" + name);
  };
  add("model", file_names(FileKind::Model));
  add("cluster", file_names(FileKind::Cluster));
  add("run.schedule", names_of(schedules::catalog()));
  add("plan.planner", names_of(planners::catalog()));
  add("weights", names_of(weights::catalog()));
  return words;
}

/// The words of a text such as "text, csv or json"; empty if it has anything else.
Strings words_in(std::string doc) {
  if (const auto last = doc.rfind(" or "); last != doc.npos) doc = doc.substr(0, last) + ", " + doc.substr(last + 4);
  Strings words;
  for (const std::string& word : split(doc, ',')) words.emplace_back(trim(word));
  const auto is_word = [](const std::string& w) { return w.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == w.npos; };
  return words.size() > 1 && std::all_of(words.begin(), words.end(), is_word) ? words : Strings{};
}

/// -o and --out for "-o,--out".
Strings flags_of(const Argument& a) {
  Strings flags;
  for (const std::string& flag : split(a.flags, ','))
    if (flag.starts_with('-')) flags.push_back(flag);
  return flags;
}

/// The names that an argument accepts: names from a catalog, files that are found by name, or the words that its help
/// lists if it lists nothing else. `--set` has whole assignments. Empty if the argument accepts any text.
Strings words_of(const Command& command, const Argument& a) {
  const std::string name = split(a.flags, ',').back();
  const bool scenario = a.doc.starts_with("Scenario");
  if (name == "--backend") return names_of(backends::catalog());
  if (name == "--simulator") return simulator_names();
  if (name == "--planner") return with_all(names_of(planners::catalog()));
  if (name == "--schedules") return with_all(names_of(schedules::catalog()));
  if (name == "--schedule" || (command.name == "schedule" && name == "NAME")) return names_of(schedules::catalog());
  if (name == "--weights") return names_of(weights::catalog());
  if (name == "--set" && a.doc.starts_with("path=value")) return assignments();
  if (name == "FILE" && (scenario || command.name == "check")) return file_names(FileKind::Scenario);
  if (name == "FILE" && command.name == "sweep") return file_names(FileKind::Sweep);
  if (command.name == "reproduce" && name == "NAME") return file_names(FileKind::Published);
  return words_in(a.doc);
}

/// All flags of a command, such as "-o" and "--out".
std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> words{"-h", "--help"};
  for (const Argument& a : command.arguments)
    for (std::string& flag : flags_of(a)) words.push_back(std::move(flag));
  return words;
}

/// The names that a command accepts without a flag.
std::vector<std::string> positional_words(const Command& command) {
  for (const Argument& a : command.arguments)
    if (const auto words = words_of(command, a); flags_of(a).empty() && !words.empty()) return words;
  return {};
}

/// One line of a shell's `case` for each option whose values have names: "run -b"|"run --backend" and the names.
std::string value_cases(fmt::format_string<std::string, std::string> line) {
  std::string text;
  for (const Command* c : commands::catalog())
    for (const Argument& a : c->arguments) {
      const std::vector<std::string> words = words_of(*c, a);
      std::vector<std::string> when;
      for (const std::string& flag : flags_of(a)) when.push_back(fmt::format("\"{} {}\"", c->name, flag));
      if (!words.empty() && !when.empty()) text += fmt::format(line, join(when, "|"), join(words, " "));
    }
  return text;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command* c : commands::catalog()) names.emplace_back(c->name);
  return names;
}

/// Completes values after an option and after each comma in a list, names and files after a command, and options after
/// a dash. Bash has split the line at every "=".
std::string bash() {
  std::string by_command;
  for (const Command* c : commands::catalog())
    by_command += fmt::format("    {}) options=\"{}\" words=\"{}\" ;;\n", c->name, join(options_of(*c), " "),
                              join(positional_words(*c), " "));
  return fmt::format(R"(# bash completion for stagecraft: source it, or put it where bash-completion looks.
_stagecraft() {{
  local at=$COMP_CWORD word="${{COMP_WORDS[COMP_CWORD]}}" flag="" options="" words="" before=""
  if [ "$at" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{} --help --version" -- "$word")
    return
  fi
  while [ "$at" -gt 2 ] && [[ "${{COMP_WORDS[at]}}" == "=" || "${{COMP_WORDS[at-1]}}" == "=" ]]; do
    at=$((at - 1))
    word="${{COMP_WORDS[at]}}$word"
  done
  flag="${{COMP_WORDS[at-1]}}"
  [[ "$word" == --*=* ]] && flag="${{word%%=*}}" word="${{word#*=}}"
  case "${{COMP_WORDS[1]}} $flag" in
{}  esac
  if [ -n "$words" ]; then
    [[ "$word" == *,* ]] && before="${{word%,*}},"
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "${{word#"$before"}}")
    [[ "$word" == *=* ]] && COMPREPLY=("${{COMPREPLY[@]#"${{word%=*}}="}}")
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word") ;;
  esac
}}
complete -o filenames -F _stagecraft stagecraft
)",
                     join(command_names(), " "), value_cases("    {}) words=\"{}\" ;;\n"), by_command);
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char ch : text) out += ch == '\'' ? std::string("'\\''") : std::string(1, ch);
  return out + "'";
}

std::string zsh() {
  std::string list, options, command_cases;
  for (const Command* c : commands::catalog()) {
    list += fmt::format("    {}\n", single_quoted(fmt::format("{}:{}", c->name, c->summary)));
    options += fmt::format("      {}) compadd -- {} ;;\n", c->name, join(options_of(*c), " "));
    if (const auto words = positional_words(*c); !words.empty())
      command_cases += fmt::format("    {}) compadd -- {} ;;\n", c->name, join(words, " "));
  }
  return fmt::format(R"(#compdef stagecraft
_stagecraft() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local flag=$words[CURRENT-1]
  [[ $PREFIX == --*=* ]] && {{ flag=${{PREFIX%%=*}}; compset -P 1 '*=' }}
  case "$words[2] $flag" in
{}  esac
  if [[ $PREFIX == -* ]]; then
    case $words[2] in
{}    esac
    return
  fi
  case $words[2] in
{}  esac
  _files
}}
compdef _stagecraft stagecraft
)",
                     list, value_cases("    {}) compset -P '*,'; compadd -- {}; return ;;\n"), options, command_cases);
}

std::string fish() {
  std::string text = "# fish completion for stagecraft\n";
  for (const Command* c : commands::catalog()) {
    text += fmt::format("complete -c stagecraft -n __fish_use_subcommand -f -a {} -d {}\n", c->name,
                        single_quoted(c->summary));
    for (const Argument& a : c->arguments) {
      std::string flags;
      for (const std::string& flag : flags_of(a))
        flags += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      const std::string words = join(words_of(*c, a), " ");
      if (flags.empty() && words.empty()) continue;
      if (!flags.empty() && a.kind != Argument::Kind::Flag) flags += words.empty() ? " -r" : " -x";
      text += fmt::format("complete -c stagecraft -n '__fish_seen_subcommand_from {}'{}{} -d {}\n", c->name, flags,
                          words.empty() ? "" : " -a " + single_quoted(words), single_quoted(a.doc));
    }
  }
  return text;
}

int execute_completion(const Arguments& a) {
  const std::string shell = a.text("SHELL");
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  if (shell == "bash")
    print(bash());
  else if (shell == "zsh")
    print(zsh());
  else if (shell == "fish")
    print(fish());
  else
    throw InputError(fmt::format("there is no completion for '{}'", shell), suggest(shell, shells));
  return 0;
}

}  // namespace

extern const Command completion{
    .name = "completion",
    .summary = "Print what makes a shell complete commands, options and names",
    .group = "Rest",
    .example = "source <(stagecraft completion bash)",
    .arguments = {{"SHELL", Argument::Kind::Text, "bash, zsh or fish", {}, true}},
    .run = execute_completion,
};

}  // namespace stagecraft::commands
