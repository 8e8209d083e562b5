#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "tools/stagecraft/completion_words.hpp"

namespace stagecraft::commands {
namespace {

/// Options as they are typed: "-o --out".
std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> words{"-h", "--help"};
  for (const Argument& a : command.arguments)
    for (std::string& flag : flags_of(a)) words.push_back(std::move(flag));
  return words;
}

/// What stands by itself behind a command, where it has names.
std::vector<std::string> own_words_of(const Command& command) {
  for (const Argument& a : command.arguments)
    if (const auto words = words_of(command, a); flags_of(a).empty() && !words.empty()) return words;
  return {};
}

/// One line of a `case` for each option whose values have names: "run -b"|"run --backend", and these.
std::string value_cases(fmt::format_string<std::string, std::string> line) {
  std::string text;
  for (const Command* c : commands::all())
    for (const Argument& a : c->arguments) {
      const std::vector<std::string> words = words_of(*c, a);
      std::vector<std::string> when;
      for (const std::string& flag : flags_of(a)) when.push_back(fmt::format("\"{} {}\"", c->name, flag));
      if (!words.empty() && !when.empty()) text += fmt::format(line, join(when, "|"), join(words, " "));
    }
  return text;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Command* c : commands::all()) all.emplace_back(c->name);
  return all;
}

/// Behind an option its values, each behind a comma too; names and files behind a command, its options behind a dash.
/// Bash has cut what is typed at every "=".
std::string bash() {
  std::string by_command;
  for (const Command* c : commands::all())
    by_command += fmt::format("    {}) options=\"{}\" words=\"{}\" ;;\n", c->name, join(options_of(*c), " "),
                              join(own_words_of(*c), " "));
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
                     join(names(), " "), value_cases("    {}) words=\"{}\" ;;\n"), by_command);
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char ch : text) out += ch == '\'' ? std::string("'\\''") : std::string(1, ch);
  return out + "'";
}

std::string zsh() {
  std::string list, options, own;
  for (const Command* c : commands::all()) {
    list += fmt::format("    {}\n", single_quoted(fmt::format("{}:{}", c->name, c->summary)));
    options += fmt::format("      {}) compadd -- {} ;;\n", c->name, join(options_of(*c), " "));
    if (const auto words = own_words_of(*c); !words.empty())
      own += fmt::format("    {}) compadd -- {} ;;\n", c->name, join(words, " "));
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
                     list, value_cases("    {}) compset -P '*,'; compadd -- {}; return ;;\n"), options, own);
}

std::string fish() {
  std::string text = "# fish completion for stagecraft\n";
  for (const Command* c : commands::all()) {
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

int execute(const Arguments& a) {
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
    .group = "Around",
    .example = "source <(stagecraft completion bash)",
    .arguments = {{"SHELL", Argument::Kind::Text, "bash, zsh or fish", {}, true}},
    .run = execute,
};

}  // namespace stagecraft::commands
