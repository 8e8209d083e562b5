// The program `stagecraft`: reads the command line by the catalog of commands, suggests what a wrong word may mean,
// starts or joins processes, and turns errors into exit codes.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/world.hpp"
#include "sim/config/synonyms.hpp"
#include "sim/config/walk.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/host.hpp"
#include "sim/core/output.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/version.hpp"
#include "sim/output/text_layout.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/progress.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace {

using namespace stagecraft;

/// The last flag without its dashes.
std::string key_of(const std::string& flags) {
  const std::string last = flags.substr(flags.rfind(',') + 1);
  return last.substr(last.find_first_not_of('-'));
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_of("0123456789.") != 1;
}

/// The path of a field that is at the top of a scenario or right below; empty for other names.
std::string field_path(const std::string& name) {
  for (const config::Field& field : scenario_fields().fields) {
    if (field.name == name) return name;
    if (field.selector == name) return config::under(field.name, name);
    std::vector<const config::MapSpec*> tables{field.map};
    if (field.variants)
      for (const config::Variant& v : field.variants()) tables.push_back(v.fields);
    for (const config::MapSpec* table : tables)
      if (table && table->find(name)) return config::under(field.name, name);
  }
  return {};
}

/// "--set run.micro_batches" for "--micro-batches" and "--set plan.group.tensor" for "--tp", where the command has
/// --set and there is such a field. Empty otherwise.
std::string set_option(const Command& command, const std::string& option) {
  const bool sets = std::any_of(command.arguments.begin(), command.arguments.end(), [](const Argument& a) {
    return a.flags.ends_with("--set") && a.doc.find("path=value") != std::string::npos;
  });
  if (!sets || !option.starts_with("--")) return {};
  std::string name = option.substr(2);
  std::replace(name.begin(), name.end(), '-', '_');
  std::string path;
  for (const config::Meaning& meaning : config::meanings(name)) {
    if (!path.empty()) break;
    path = meaning.place.empty() ? field_path(std::string(meaning.name))
                                 : config::under(std::string(meaning.place), meaning.name);
  }
  if (path.empty()) path = field_path(name);
  return path.empty() ? "" : "--set " + path;
}

/// What other tools call an option that this command has; empty for other words.
std::string other_option(const Command& command, const std::string& option) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"--output", "--out"}, {"--json", "--format json"}, {"--csv", "--format csv"}, {"--silent", "--quiet"}};
  for (const auto& [other, meant] : kOthers) {
    const std::string flag = split(meant, ' ').front();
    for (const Argument& a : command.arguments)
      if (option == other && a.flags.ends_with(flag)) return meant;
  }
  return {};
}

/// "run, search and sweep have it": the commands that have this option. Empty where none has it.
std::string commands_with(const std::string& option) {
  std::vector<std::string> names;
  for (const Command* command : commands::catalog())
    for (const Argument& a : command->arguments) {
      const std::vector<std::string> flags = split(a.flags, ',');
      if (std::find(flags.begin(), flags.end(), option) != flags.end()) names.emplace_back(command->name);
    }
  if (names.empty() || names.size() > 4) return {};
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last + " has it" : fmt::format("{} and {} have it", join(names, ", "), last);
}

/// CLI11 takes a misspelt option for one value too many of another, so the words are looked through before.
void check_options(const Command& command, int argc, char** argv) {
  std::vector<std::string> known_options{"-h", "--help"};
  for (const Argument& a : command.arguments)
    for (const std::string& flag : split(a.flags, ','))
      if (is_option(flag)) known_options.push_back(flag);
  for (int i = 2; i < argc && std::string(argv[i]) != "--"; ++i) {
    const std::string word = argv[i];
    const std::string name = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (!is_option(word) || std::find(known_options.begin(), known_options.end(), name) != known_options.end())
      continue;
    std::optional<std::string> near = other_option(command, name);
    if (near->empty()) near = name.size() > 2 ? closest(name, known_options) : std::nullopt;
    const std::string others = near ? "" : commands_with(name);
    const std::string field = near ? "" : set_option(command, name);
    throw InputError(fmt::format("'stagecraft {}' has no option '{}'", command.name, name),
                     near             ? fmt::format("did you mean '{}'?", *near)
                     : !field.empty() ? fmt::format("a field of the scenario is set with {}=...", field)
                     : !others.empty()
                         ? fmt::format("{}; stagecraft {} --help shows what this one has", others, command.name)
                         : fmt::format("stagecraft {} --help shows what there is", command.name));
  }
}

/// CLI11 takes a word in brackets for a list, and so `[]` for no word at all.
void check_brackets(const Command& command, int argc, char** argv) {
  const auto takes_value = [&](const std::string& word) {
    return std::any_of(command.arguments.begin(), command.arguments.end(), [&](const Argument& a) {
      const std::vector<std::string> flags = split(a.flags, ',');
      return a.kind != Argument::Kind::Flag && std::find(flags.begin(), flags.end(), word) != flags.end();
    });
  };
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with('[') && word.ends_with(']') && !takes_value(argv[i - 1]))
      throw InputError(fmt::format("{} is no name of a file", word), fmt::format("a file of this name is ./{}", word));
  }
}

/// The command that a word means: a slip of the pen, or what other tools call it.
std::string command_help(const std::string& word, const std::vector<std::string>& names) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"simulate", "run"}, {"execute", "run"},  {"optimize", "search"}, {"tune", "search"}, {"diff", "compare"},
      {"lint", "check"},   {"verify", "check"}, {"describe", "show"},   {"info", "doctor"}, {"convert", "import"}};
  if (closest(word, names)) return suggest(word, names);
  for (const auto& [other, name] : kOthers)
    if (word == other) return fmt::format("did you mean '{}'?", name);
  return "stagecraft --help shows the commands";
}

/// "--set path value" in place of "--set path=value": the option as it is meant.
void check_assignments(int argc, char** argv) {
  for (int i = 2; i + 2 < argc; ++i) {
    const std::string option = argv[i], path = argv[i + 1], value = argv[i + 2];
    if ((option != "--set" && option != "-s") || path.find('=') != std::string::npos || is_option(value)) continue;
    throw InputError(fmt::format("{} {} has no value", option, path),
                     fmt::format("write path=value: {} {}={}", option, path, value));
  }
}

/// The command line with the command first, where options stand in front of it; else empty.
std::string command_first(int argc, char** argv, const std::vector<std::string>& names) {
  for (int i = 2; i < argc; ++i) {
    if (std::find(names.begin(), names.end(), argv[i]) == names.end()) continue;
    std::string text = fmt::format("stagecraft {}", argv[i]);
    for (int k = i + 1; k < argc; ++k) text += fmt::format(" {}", argv[k]);
    for (int k = 1; k < i; ++k) text += fmt::format(" {}", argv[k]);
    return text;
  }
  return {};
}

/// Rewords CLI11's messages, which count values.
std::string reworded(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::size_t colon = text.find(": At Most 1 required");
  if (colon != std::string::npos) return text.substr(0, colon) + " may be given once only";
  if (text.ends_with(" missing") && text.find(" required ") != std::string::npos)
    return text.substr(0, text.find(':')) + " needs a value";
  const std::string extra = "The following argument was not expected: ",
                    extras = "The following arguments were not expected: ";
  for (const std::string& start : {extra, extras})
    if (text.starts_with(start)) return fmt::format("nothing is known to do with '{}'", text.substr(start.size()));
  return text;
}

/// The heading of an option in --help.
std::string_view option_group(const std::string& key) {
  constexpr std::string_view kOutput[] = {"out",   "format",   "columns", "wide",  "color",   "details",
                                          "quiet", "no-gantt", "gantt",   "width", "html",    "svg",
                                          "pdf",   "size",     "title",   "draw",  "trace",   "metric",
                                          "over",  "by",       "label",   "force", "verbose", "micro-batches"};
  constexpr std::string_view kExpert[] = {"processes", "hosts",    "rank",  "shard", "jobs",   "timeout",
                                          "retry",     "reuse",    "most",  "front", "orders", "threads",
                                          "streams",   "capacity", "torch", "lint",  "save",   "resume"};
  const auto has = [&](const auto& list) { return std::find(std::begin(list), std::end(list), key) != std::end(list); };
  return has(kOutput) ? "Output" : has(kExpert) ? "Expert" : "Common";
}

/// The arguments of a command by the headings of --help, in their order below each.
std::vector<const Argument*> by_heading(const Command& command) {
  std::vector<const Argument*> order;
  for (const Argument& a : command.arguments) order.push_back(&a);
  const auto place = [](const Argument* a) {
    if (!a->only.empty()) return 3;
    const std::string_view group = a->flags.front() == '-' ? option_group(key_of(a->flags)) : "Common";
    return group == "Common" ? 0 : group == "Output" ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Argument* a, const Argument* b) { return place(a) < place(b); });
  return order;
}

CLI::App* add_command(CLI::App& app, const Command& command) {
  CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
  sub->group(std::string(command.group));
  return sub;
}

void add_options(CLI::App* sub, const Command& command, Arguments& arguments) {
  sub->get_help_ptr()->group("Common");
  if (!command.example.empty()) sub->footer("Example:\n  " + std::string(command.example));
  for (const Argument* argument : by_heading(command)) {
    const Argument& a = *argument;
    auto& values = arguments.values[key_of(a.flags)];
    CLI::Option* option = nullptr;
    if (a.kind == Argument::Kind::Flag) {
      option = sub->add_flag_callback(
          a.flags, [&values] { values = {"true"}; }, a.doc);
    } else {
      const bool positional = a.flags.front() != '-', list = a.kind == Argument::Kind::List;
      option = sub->add_option(a.flags, values, a.doc)->type_size(1);
      option->expected(1, list ? CLI::detail::expected_max_vector_size : 1)->allow_extra_args(list && positional);
      option->type_name(positional                         ? ""
                        : a.kind == Argument::Kind::Count  ? "N"
                        : a.kind == Argument::Kind::Number ? "NUMBER"
                                                           : "TEXT");
      if (!a.fallback.empty()) option->default_str(a.fallback);
    }
    if (a.required) option->required();
    if (a.flags.front() == '-') option->group(std::string(option_group(key_of(a.flags))));
    if (!a.only.empty()) option->group("Only for " + a.only);
  }
}

/// Indices of the catalog in the order of the headings of `--help`.
std::vector<std::size_t> commands_by_group() {
  constexpr std::string_view kGroups[] = {"Plan", "Schedules", "Measure", "Files", "Rest"};
  const auto place = [&](std::size_t i) {
    return std::find(std::begin(kGroups), std::end(kGroups), commands::catalog()[i]->group) - std::begin(kGroups);
  };
  std::vector<std::size_t> order(commands::catalog().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  return order;
}

/// The words with "--" in front of those that belong to a program which the command runs: its options are not ours.
std::vector<char*> with_program_words(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  constexpr std::ptrdiff_t kPlace = 3;  // stagecraft COMMAND ACTION PLACE PROGRAM...
  for (const Command* command : commands::catalog()) {
    if (std::ssize(words) <= kPlace + 1 || command->name != words[1] || command->runs_program != words[2]) continue;
    static std::string end_of_options = "--";
    std::erase_if(words, [n = 0](const char* word) mutable { return n++ == kPlace + 1 && word == end_of_options; });
    words.insert(words.begin() + kPlace, end_of_options.data());
    break;
  }
  words.push_back(nullptr);
  return words;
}

[[noreturn]] void refuse_words(int argc, char** argv, const CLI::ParseError& e) {
  std::vector<std::string> names;
  for (const Command* command : commands::catalog()) names.emplace_back(command->name);
  const std::string word = argc > 1 ? argv[1] : "";
  const bool is_command = std::find(names.begin(), names.end(), word) != names.end();
  if (!is_command && !word.empty() && word.front() != '-')
    throw InputError("there is no command '" + word + "'", command_help(word, names));
  const std::vector<std::string> flags{"--help", "--version"};
  if (is_command) check_assignments(argc, argv);
  if (const std::string better = is_command ? "" : command_first(argc, argv, names); !better.empty())
    throw InputError("options follow the command", better);
  if (!is_command && closest(word, flags)) throw InputError(reworded(e), suggest(word, flags));
  throw InputError(reworded(e), is_command ? "stagecraft " + word + " --help shows what there is"
                                           : "stagecraft --help shows the commands");
}

/// Joins this process with those that the options name, or starts them.
void choose_processes(const Command& command, const Arguments& a) {
  constexpr int kMostProcesses = 256;
  check_named_processes();
  const bool starts = a.has("processes"), joins = a.has("hosts") || a.has("rank");
  if (!starts && !joins) return;
  const std::string option = starts ? "--processes" : a.has("hosts") ? "--hosts" : "--rank";
  if ((starts && joins) || launched().size > 1)
    throw InputError(fmt::format("{} starts or joins processes, but {}", option,
                                 starts && joins ? "--hosts and --rank do so, too" : "a launcher has done so"),
                     "one of them");
  if (!command.shared(a))
    throw InputError(fmt::format("{} is for work that processes share, and one does this alone", option),
                     "stagecraft run FILE --backend cpu, for example");
  if (starts) return fork_local_processes(a.count("processes", 1, kMostProcesses));
  if (!a.has("hosts") || !a.has("rank"))
    throw InputError(a.has("rank") ? "--rank needs --hosts" : "--hosts needs --rank",
                     "--hosts HOST[:PORT],HOST[:PORT],... --rank N");
  name_processes(a.text("hosts"), a.count("rank", 0, kMostProcesses));
}

int run_command(const Command& command, Arguments& arguments) {
  for (const Argument& a : command.arguments)
    if (auto& values = arguments.values[key_of(a.flags)]; values.empty() && !a.fallback.empty()) values = {a.fallback};
  for (const Argument& a : command.arguments)
    if (a.flags.front() != '-')  // What it is about is an input, also before it is read.
      for (const std::string& word : arguments.list(key_of(a.flags))) note_input(word);
  choose_processes(command, arguments);
  const bool shared = launched().size > 1 && command.shared && command.shared(arguments);
  if (shared && !command.joins) join_world(build_name());
  if (!shared && launched().rank > 0) return 0;
  std::optional<Progress> progress;
  if (launched().rank == 0) progress.emplace(arguments.flag("quiet"));
  return command.run(arguments);
}

int run(int given_argc, char** given_argv) {
  std::vector<char*> words = with_program_words(given_argc, given_argv);
  char** argv = words.data();
  const int argc = static_cast<int>(words.size()) - 1;
  CLI::App app{"Simulate, measure and compare pipeline-parallel training.", "stagecraft"};
  app.set_version_flag("--version", version_text);  // Only when asked: it looks for a GPU driver.
  app.require_subcommand(0, 1);
  app.footer("stagecraft COMMAND --help shows the options of a command.");
  if (argc > 1 && std::string(argv[1]) == "help") {  // Many tools accept `help`.
    std::swap(argv[1], argv[argc - 1]);
    static std::string help = "--help";
    argv[argc - 1] = help.data();
  }
  const Command* chosen = argc > 1 ? find_in(commands::catalog(), argv[1]) : nullptr;
  Arguments arguments;
  if (chosen) {  // The options of the others would slow down each start.
    add_options(add_command(app, *chosen), *chosen, arguments);
    check_options(*chosen, argc, argv);
    check_brackets(*chosen, argc, argv);
  } else {
    for (const std::size_t i : commands_by_group()) add_command(app, *commands::catalog()[i]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto subs = app.get_subcommands();
    print(wrap_lines(subs.empty() ? app.help() : subs.front()->help(app.get_name()), text_width()));
    return 0;
  } catch (const CLI::CallForVersion& e) {
    print(std::string(e.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& e) {
    refuse_words(argc, argv, e);
  }
  if (chosen) return run_command(*chosen, arguments);
  print(wrap_lines(app.help(), text_width()));
  return 0;
}

/// The exit code, and what is wrong when it is not zero.
Ending attempt(int argc, char** argv) try {
  const int code = run(argc, argv);
  flush();
  return {code, {}};
} catch (const InputError& e) {
  return {2, e.what()};
} catch (const Infeasible& e) {
  return {3, e.problem().where.line > 0 ? render(e.problem()) : std::string("cannot be done: ") + e.what()};
} catch (const BackendError& e) {
  return {4, std::string("failed: ") + e.what()};
} catch (const FailedElsewhere&) {
  return {4, {}};
} catch (const std::bad_alloc&) {
  return {4, "this machine has not enough memory for it"};
} catch (const std::exception& e) {
  return {70, std::string("a bug in stagecraft: ") + e.what() +
                  "\nplease report it with the output of stagecraft --version"};
}

/// finish_all(), whose messages take memory too.
Ending finish(const Ending& ending) try { return finish_all(ending); } catch (const std::exception& e) {
  return ending.code ? ending : Ending{4, std::string("failed: ") + e.what()};
}

void say(const Ending& ending) try {
  if (ending.code != 0 && !ending.text.empty())
    print_error("{}{}", ending.text, ending.text.back() == '\n' ? "" : "\n");
} catch (const std::bad_alloc&) {
  write_error("this machine has not enough memory to say what is wrong\n");
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  keep_freed_memory();
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // A file that may not grow is then refused with a reason.
  if (launched().size == 1 || (are_processes_named() && launched().rank == 0)) end_on_interrupt();
  const Ending ending = finish(attempt(argc, argv));
  std::fflush(stdout);
  if (ending.code != 0) remove_half_written();  // A folder that was made for results and has none.
  say(ending);
  leave_world(ending.code);
  return ending.code;
}
