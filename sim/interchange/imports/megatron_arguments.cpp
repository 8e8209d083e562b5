// Picks the training command out of a script, refuses what Megatron-LM's parser would refuse, and hands the values of
// options to the other megatron_*.cpp; options that they do not read become notes.

#include "sim/interchange/imports/megatron_arguments.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/config/units.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_options.hpp"

namespace stagecraft {
namespace {

constexpr int kMostSuggestions = 20;  // As many problems are printed; a suggestion compares a word with all options.

bool is_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }
bool is_variable(const std::string& word) { return word.starts_with('$') || word.starts_with('`'); }
/// Whether a part of the word comes from a variable that is not set, or from a command.
bool is_computed(const std::string& word) {
  return is_variable(word) || word.find("${") != std::string::npos || word.find("$(") != std::string::npos ||
         word.find('`') != std::string::npos;
}

/// "--micro-batch-size" without its dashes, and without "=4".
std::string option_name(const std::string& option) {
  const std::size_t equals = option.find('=');
  return option.substr(2, equals == std::string::npos ? equals : equals - 2);
}

/// A word that holds several, such as "--vocab-size 128256" or a whole command, is split where the shell would split
/// it when it is used without quotes.
ShellCommand split_words(const ShellCommand& command) {
  ShellCommand words;
  for (const ShellWord& word : command) {
    const std::size_t space = word.text.find_first_of(" \n\t");
    const bool begins = is_option(word.text) && word.text.find('=') >= space;
    const bool holds = space != std::string::npos && (begins || word.text.find(" --", space) != std::string::npos);
    if (!holds) {
      words.push_back(word);
      continue;
    }
    for (const ShellCommand& part : read_shell(word.text).commands)
      for (const ShellWord& inner : part) words.push_back({inner.text, word.line});
  }
  return words;
}

/// Options that the training has, and no other program of a script.
bool is_of_training(const std::string& word) {
  constexpr std::array kNames{"--num-layers", "--micro-batch-size", "--global-batch-size",
                              "--tensor-model-parallel-size", "--pipeline-model-parallel-size"};
  const std::string option = word.substr(0, word.find('='));
  return std::find(kNames.begin(), kNames.end(), option) != kNames.end();
}

/// Where the arguments begin: after the name of the program, or else after that of the launcher.
std::size_t first_argument(std::span<const ShellWord> words, std::size_t first_of_training) {
  constexpr std::array kPrograms{"torchrun", "deepspeed", "python", "python3", "srun", "mpirun", "accelerate"};
  std::size_t after = 0;
  for (std::size_t i = 0; i < first_of_training; ++i) {
    const std::string& text = words[i].text;
    if (text.ends_with(".py")) after = i + 1;
  }
  if (after > 0) return after;
  for (std::size_t i = 0; i < first_of_training; ++i)
    for (const char* launcher : kPrograms)
      if (words[i].text == launcher) after = i + 1;
  while (after < first_of_training && !is_option(words[after].text)) ++after;
  return after;
}

/// "[a b]" and "a,b" as two values.
std::vector<std::string> parts_of(std::string value) {
  std::replace_if(
      value.begin(), value.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
  std::vector<std::string> parts = split(value, ' ');
  erase_if(parts, [](const std::string& part) { return part.empty(); });
  return parts;
}

/// "no whole number" of a word that an option does not take, and what it takes.
std::pair<const char*, std::string> lacks(const MegatronOption& option) {
  switch (option.word) {
    case MegatronWord::Whole:
      return {"no whole number", "a whole number"};
    case MegatronWord::Real:
      return {"no number", "a number"};
    case MegatronWord::Pattern:
      return {"neither a whole number nor a list of layers", "a list such as [0]*3+[1]*58"};
    default:
      return {"none of its choices", "one of " + join(option.choices)};
  }
}

/// Whether a note names the option, which longer names contain.
bool is_noted(const TrainingSetup& s, const std::string& option) {
  for (const std::vector<std::string>* list :
       {&s.matched, &s.unmodeled, &s.unmodeled_time, &s.unmodeled_memory, &s.without_use, &s.assumed})
    for (const std::string& note : *list)
      for (std::size_t at = note.find(option); at != std::string::npos; at = note.find(option, at + 1))
        if (at + option.size() == note.size() || note[at + option.size()] == ' ') return true;
  return false;
}

}  // namespace

MegatronArguments::MegatronArguments(const std::string& text, const std::string& file, std::string release)
    : file_(file), release_(std::move(release)) {
  ShellScript script;
  try {
    script = read_shell(text);
  } catch (const InputError& e) {
    refuse_all(e.problems().front().message, e.problems().front().help);
  }
  of_script_ = shell_notes(script);
  values_ = std::move(script.values);
  for (const ShellCommand& command : script.commands) read_command(split_words(command));
  if (!problems_.empty()) throw InputError(std::move(problems_));
  if (!has("num-layers"))
    refuse_all("there is no --num-layers, so these are not the arguments of Megatron-LM",
               "give the script that starts the training, or a file with its arguments");
  refuse_computed();
  check_words();
}

/// Commands that do not train are passed over.
void MegatronArguments::read_command(const ShellCommand& words) {
  for (const ShellWord& word : words)
    for (const char* script : {"pretrain_bert.py", "pretrain_t5.py", "pretrain_ict.py"})
      if (word.text.ends_with(script))
        refuse_all(fmt::format("line {} trains with {}, and only GPT is read", word.line, script),
                   "write the scenario by hand, from models/bert-base.yaml for example");
  if (words.empty()) return;
  const bool is_list = is_option(words.front().text);
  const auto first =
      std::find_if(words.begin(), words.end(), [](const ShellWord& w) { return is_of_training(w.text); });
  if (first == words.end() && is_list) return read_arguments(words);
  if (first == words.end()) return;
  const std::span<const ShellWord> command(words);
  const std::size_t begin = first_argument(command, first - words.begin());
  read_launcher(command.first(begin));
  read_arguments(command.subspan(begin));
}

void MegatronArguments::add_problem(int line, const std::string& option, std::string message, std::string help) {
  problems_.push_back({{file_, line, 1}, option, std::move(message), std::move(help), "argument"});
}

void MegatronArguments::read_arguments(std::span<const ShellWord> words) {
  for (std::size_t at = 0; at < words.size();) {
    const auto& [text, line] = words[at];
    if (is_option(text)) {
      at = read_option(words, at);
      continue;
    }
    if (is_variable(text))
      unset_.insert(text);
    else
      add_problem(line, {}, fmt::format("Megatron-LM's parser refuses this: unrecognized arguments: {}", text),
                  fmt::format("remove '{}'", text));
    ++at;
  }
}

/// Reads the option at `at` with its words; the place after them. The last one of a name counts, as in argparse.
std::size_t MegatronArguments::read_option(std::span<const ShellWord> words, std::size_t at) {
  const auto& [text, line] = words[at++];
  const std::string name = option_name(text), written = "--" + name;
  const MegatronOption* option = find_megatron_option(name);
  Argument argument{{}, line};
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos) argument.values.push_back(text.substr(equals + 1));
  const int limit = option ? option->max_words : 1;
  while (equals == std::string::npos && std::ssize(argument.values) < limit && at < words.size() &&
         !is_option(words[at].text))
    argument.values.push_back(words[at++].text);
  if (!option) {
    const std::string suggestion =
        std::ssize(problems_) < kMostSuggestions ? suggest_megatron_option(name) : std::string();
    add_problem(line, written, "Megatron-LM has no such option, so its parser refuses it",
                suggestion.empty() ? "remove it" : suggestion);
  } else if (std::ssize(argument.values) < option->min_words) {
    add_problem(line, written,
                fmt::format("Megatron-LM's parser refuses this: {} to follow it",
                            option->min_words == 1 ? "a word has" : pluralize(option->min_words, "word") + " have"),
                "write its value after it");
  } else if (std::ssize(argument.values) > option->max_words) {
    add_problem(line, written, "Megatron-LM's parser refuses this: no word follows it", "write " + written + " alone");
  } else {
    while (at < words.size() && !is_option(words[at].text) && !is_variable(words[at].text)) {
      add_problem(
          words[at].line, written,
          fmt::format("Megatron-LM's parser refuses what follows it: unrecognized arguments: {}", words[at].text),
          fmt::format("remove '{}', or end the arguments before it", words[at].text));
      ++at;
    }
  }
  for (const std::string& value : argument.values)
    if (is_variable(value)) unset_.insert(value);
  if (option) given_[name] = std::move(argument);
  return at;
}

/// The numbers of processes and nodes alone say something about the plan.
void MegatronArguments::read_launcher(std::span<const ShellWord> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i].text)) continue;
    const std::string& text = words[i].text;
    const std::string name = option_name(text);
    const MegatronOption* option = find_megatron_option(name);
    if (!option || option->use != MegatronUse::Launcher) {
      of_launcher_.insert("--" + name);
      continue;
    }
    Argument argument{{}, words[i].line};
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos)
      argument.values.push_back(text.substr(equals + 1));
    else if (option->max_words == 1 && i + 1 < words.size())
      argument.values.push_back(words[++i].text);
    given_[name] = std::move(argument);
  }
}

/// A value that stands for a field has to be in the file, because no command is run. The launcher's numbers of
/// processes may come from the machine.
void MegatronArguments::refuse_computed() {
  for (const auto& [name, argument] : given_) {
    if (find_megatron_option(name)->use != MegatronUse::Field) continue;
    const auto value = std::find_if(argument.values.begin(), argument.values.end(), is_computed);
    if (value != argument.values.end())
      problems_.push_back({where(name), "--" + name, fmt::format("the value of {} is not in the file", *value),
                           "write the value into the script, or set the variable there: import runs no command",
                           "computed-value"});
  }
  if (!problems_.empty()) throw InputError(std::move(problems_));
}

/// Other versions and forks have other choices.
void MegatronArguments::check_words() {
  const bool is_older = std::any_of(given_.begin(), given_.end(),
                                    [](const auto& given) { return find_megatron_option(given.first)->older; });
  for (const auto& [name, argument] : given_) {
    const MegatronOption& option = *find_megatron_option(name);
    if (is_older && option.word == MegatronWord::Choice) continue;
    const bool is_list = option.max_words > 1;
    for (const std::string& given : argument.values)
      for (const std::string& value : is_list ? parts_of(given) : std::vector{given}) {
        if (is_computed(value) || option.takes(value)) continue;
        const auto& [lack, help] = lacks(option);
        add_problem(argument.line, "--" + name,
                    fmt::format("Megatron-LM's parser refuses '{}', which is {}", value, lack), help);
      }
  }
  if (!problems_.empty()) throw InputError(std::move(problems_));
}

bool MegatronArguments::is_before_release(std::string_view release) const {
  return !release_.empty() && !release.empty() && is_before(release_, release);
}

/// Its parser would refuse them; what they mean is known all the same.
void MegatronArguments::check_releases(TrainingSetup& s) const {
  if (release_.empty()) return;
  for (const auto& [name, argument] : given_) {
    const MegatronOption& option = *find_megatron_option(name);
    if (option.use == MegatronUse::Launcher) continue;
    const auto add = [&, option_name = name](const std::string& what, const std::string& since) {
      s.of_other_releases.push_back(
          {where(option_name), "--" + option_name, fmt::format("Megatron-LM {} {}", release_, what),
           since.empty() || is_before(since, release_) ? "leave it out" : fmt::format("it is there since {}", since),
           "argument"});
    };
    if (!option.is_in(release_)) {
      add("has no such option", option.since);
      continue;
    }
    for (const std::string& value : argument.values)
      for (const std::string& choice : parts_of(value))
        if (is_before_release(option.since_of(choice)))
          add(fmt::format("does not take '{}'", choice), option.since_of(choice));
  }
}

Where MegatronArguments::where(const std::string& name) const {
  const auto entry = given_.find(name);
  return entry == given_.end() ? Where{file_, 0, 0} : Where{file_, entry->second.line, 1};
}

void MegatronArguments::refuse(const std::string& name, std::string message, std::string help) const {
  throw InputError({{where(name), "--" + name, std::move(message), std::move(help), "import"}});
}

void MegatronArguments::break_rule(const char* rule, const std::string& name, const std::string& message,
                                   std::string help) const {
  throw InputError({{where(name), "--" + name, refused_by_megatron(rule, release_) + message, std::move(help), rule}});
}

void MegatronArguments::refuse_all(std::string message, std::string help, const char* code) const {
  throw InputError({{{file_, 0, 0}, {}, std::move(message), std::move(help), code}});
}

bool MegatronArguments::take(const std::string& name) {
  if (!has(name)) return false;
  used_.insert(name);
  return true;
}

std::string MegatronArguments::word(const std::string& name) {
  if (!take(name)) return {};
  const std::vector<std::string>& values = given_.at(name).values;
  return values.empty() ? "" : values.front();
}

std::vector<std::string> MegatronArguments::words(const std::string& name) {
  std::vector<std::string> list;
  if (!take(name)) return list;
  for (const std::string& value : given_.at(name).values)
    for (std::string& part : parts_of(value)) list.push_back(std::move(part));
  return list;
}

std::optional<int> MegatronArguments::find_number(const std::string& name, int limit) {
  if (!has(name)) return {};
  const std::string text = word(name);
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 1 || value > limit)
    refuse(name, fmt::format("'{}' is not a whole number from 1 to {}", text, limit), "correct the file");
  return value;
}

std::optional<double> MegatronArguments::find_share(const std::string& name) {
  if (!has(name)) return {};
  const std::string text = word(name);
  std::string why;
  const std::optional<double> value = config::parse_number(text, why);
  if (!value || !(*value >= 0 && *value <= 1))
    refuse(name, fmt::format("'{}' is not a number from 0 to 1", text), "correct the file");
  return value;
}

int MegatronArguments::number(TrainingSetup& s, const std::string& name, const std::string& field, int fallback) {
  const std::optional<int> value = find_number(name);
  if (value) note_match(s, name, field, std::to_string(*value));
  return value.value_or(fallback);
}

bool MegatronArguments::flag(TrainingSetup& s, const std::string& name, const std::string& field,
                             const std::string& value) {
  if (!take(name)) return false;
  note_match(s, name, field, value);
  return true;
}

std::string MegatronArguments::written(const std::string& name) const {
  std::string text = "--" + name;
  for (const std::string& value : given_.at(name).values) text += " " + value;
  return text;
}

std::string MegatronArguments::take_written(const std::string& name) {
  take(name);
  return written(name);
}

std::optional<std::string> MegatronArguments::variable(const std::string& name) const {
  const auto value = values_.find(name);
  return value == values_.end() ? std::nullopt : std::optional(value->second);
}

/// An option of a field that no reader asks for is about something that the model does not have, such as experts.
void MegatronArguments::sort_others(TrainingSetup& s) const {
  std::string together;
  for (const auto& [name, argument] : given_) {
    if (used_.contains(name)) {
      if (!is_noted(s, "--" + name)) together += (together.empty() ? "" : " ") + written(name);
      continue;
    }
    const MegatronOption& option = *find_megatron_option(name);
    const bool is_usual = argument.values == std::vector<std::string>{option.fallback};
    const MegatronUse use = is_usual ? MegatronUse::WithoutUse : option.use;
    (use == MegatronUse::Time            ? s.unmodeled_time
     : use == MegatronUse::Memory        ? s.unmodeled_memory
     : use == MegatronUse::TimeAndMemory ? s.unmodeled
                                         : s.without_use)
        .push_back(written(name));
  }
  if (!together.empty()) s.matched.push_back("read with these: " + together);
  if (!of_launcher_.empty())
    s.without_use.push_back("before the program: " +
                            join(std::vector<std::string>(of_launcher_.begin(), of_launcher_.end()), " "));
  s.assumed.insert(s.assumed.end(), of_script_.begin(), of_script_.end());
  if (!unset_.empty())
    s.assumed.push_back(fmt::format("the file does not set {}; options in their values are not seen",
                                    join(std::vector<std::string>(unset_.begin(), unset_.end()))));
}

void note_match(TrainingSetup& s, const std::string& option, const std::string& field, const std::string& value) {
  s.matched.push_back(fmt::format("--{} -> {}: {}", option, field, value));
}

}  // namespace stagecraft
