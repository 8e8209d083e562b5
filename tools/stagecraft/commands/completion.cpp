#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

/// Options as they are typed: "-o --out".
std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> words{"-h", "--help"};
  for (const Argument& a : command.arguments)
    for (const std::string& flag : split(a.flags, ','))
      if (flag.front() == '-') words.push_back(flag);
  return words;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Command* c : commands::all()) all.emplace_back(c->name);
  return all;
}

/// Files behind a command, its options behind a dash.
std::string bash() {
  std::string cases;
  for (const Command* c : commands::all())
    cases += fmt::format("    {}) options=\"{}\" ;;\n", c->name, join(options_of(*c), " "));
  return fmt::format(R"(# bash completion for stagecraft: source it, or put it where bash-completion looks.
_stagecraft() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{} --help --version" -- "$word")
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  esac
}}
complete -o filenames -F _stagecraft stagecraft
)",
                     join(names(), " "), cases);
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char ch : text) out += ch == '\'' ? std::string("'\\''") : std::string(1, ch);
  return out + "'";
}

std::string zsh() {
  std::string list, cases;
  for (const Command* c : commands::all()) {
    list += fmt::format("    {}\n", single_quoted(fmt::format("{}:{}", c->name, c->summary)));
    cases += fmt::format("    {}) compadd -- {} ;;\n", c->name, join(options_of(*c), " "));
  }
  return fmt::format(R"(#compdef stagecraft
_stagecraft() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  [[ $PREFIX == -* ]] || {{ _files; return }}
  case $words[2] in
{}  esac
}}
compdef _stagecraft stagecraft
)",
                     list, cases);
}

std::string fish() {
  std::string text = "# fish completion for stagecraft\n";
  for (const Command* c : commands::all()) {
    text += fmt::format("complete -c stagecraft -n __fish_use_subcommand -f -a {} -d {}\n", c->name,
                        single_quoted(c->summary));
    for (const Argument& a : c->arguments) {
      std::string flags;
      for (const std::string& flag : split(a.flags, ','))
        if (flag.starts_with("--"))
          flags += " -l " + flag.substr(2);
        else if (flag.front() == '-')
          flags += " -s " + flag.substr(1);
      if (!flags.empty())
        text += fmt::format("complete -c stagecraft -n '__fish_seen_subcommand_from {}'{}{} -d {}\n", c->name, flags,
                            a.kind == Argument::Kind::Flag ? "" : " -r", single_quoted(a.doc));
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
    .summary = "Print what makes a shell complete commands and options",
    .group = "Around",
    .example = "source <(stagecraft completion bash)",
    .arguments = {{"SHELL", Argument::Kind::Text, "bash, zsh or fish", {}, true}},
    .run = execute,
};

}  // namespace stagecraft::commands
