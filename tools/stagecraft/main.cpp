#include <csignal>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/run/version.hpp"
#include "tools/stagecraft/command.hpp"

namespace {

using namespace stagecraft;

/// The last flag without its dashes.
std::string key_of(const std::string& flags) {
  const std::string last = flags.substr(flags.rfind(',') + 1);
  return last.substr(last.find_first_not_of('-'));
}

void add_command(CLI::App& app, const Command& command, Arguments& arguments) {
  CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
  sub->group(std::string(command.source));
  if (!command.example.empty()) sub->footer("Example:\n  " + std::string(command.example));
  for (const Argument& a : command.arguments) {
    auto& values = arguments.values[key_of(a.flags)];
    CLI::Option* option = nullptr;
    if (a.kind == Argument::Kind::Flag) {
      option = sub->add_flag_callback(a.flags, [&values] { values = {"true"}; }, a.doc);
    } else {
      option = sub->add_option(a.flags, values, a.doc)->type_size(1);
      if (a.kind == Argument::Kind::List)
        option->expected(1, 100000)->allow_extra_args(a.flags.front() != '-');
      else
        option->expected(1);
      if (!a.fallback.empty()) option->default_str(a.fallback);
    }
    if (a.required) option->required();
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Simulate, measure and compare pipeline-parallel training.", "stagecraft"};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(0, 1);
  app.footer("stagecraft COMMAND --help shows the options of a command.");
  std::vector<Arguments> arguments(commands::all().size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    add_command(app, *commands::all()[i], arguments[i]);
    names.emplace_back(commands::all()[i]->name);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto subs = app.get_subcommands();
    print(subs.empty() ? app.help() : subs.front()->help());
    return 0;
  } catch (const CLI::CallForVersion& e) {
    print(std::string(e.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& e) {
    const std::string word = argc > 1 ? argv[1] : "";
    const bool known = std::find(names.begin(), names.end(), word) != names.end();
    if (!known && !word.empty() && word.front() != '-') throw InputError("there is no command '" + word + "'", suggest(word, names));
    throw InputError(e.what(), known ? "stagecraft " + word + " --help shows what there is" : "stagecraft --help shows the commands");
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Command& command = *commands::all()[i];
    if (!app.got_subcommand(names[i])) continue;
    for (const Argument& a : command.arguments)
      if (auto& values = arguments[i].values[key_of(a.flags)]; values.empty() && !a.fallback.empty()) values = {a.fallback};
    return command.run(arguments[i]);
  }
  print(app.help());
  return 0;
}

int report(int code, const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "{}{}", text, text.empty() || text.back() != '\n' ? "\n" : "");
  return code;
}

}  // namespace

int main(int argc, char** argv) try {
  std::signal(SIGPIPE, SIG_DFL);
  return run(argc, argv);
} catch (const stagecraft::InputError& e) {
  return report(2, e.what());
} catch (const stagecraft::Infeasible& e) {
  return report(3, std::string("cannot be done: ") + e.what());
} catch (const stagecraft::BackendError& e) {
  return report(4, std::string("backend failed: ") + e.what());
} catch (const std::bad_alloc&) {
  return report(4, "this machine has not enough memory for it");
} catch (const std::exception& e) {
  return report(70, std::string("a bug in stagecraft: ") + e.what() + "\nplease report it with the output of stagecraft --version");
}
