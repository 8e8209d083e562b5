#include "sim/experiment/imports/megatron_arguments.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/imports/megatron_options.hpp"
#include "sim/experiment/imports/shell_words.hpp"

namespace stagecraft {
namespace {

bool is_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

/// Words of a script. Elements of an array such as "--vocab-size 128256" are split where the shell would split them
/// when the array is used without quotes.
std::vector<ShellWord> split_words(const std::string& text, const std::string& file) {
  std::vector<ShellWord> words;
  for (ShellWord& word : shell_words(text, file)) {
    const std::size_t space = word.text.find_first_of(" \n\t");
    if (!is_option(word.text) || space == std::string::npos || word.text.find('=') < space) {
      words.push_back(std::move(word));
      continue;
    }
    for (ShellWord& part : shell_words(word.text, file)) words.push_back({std::move(part.text), word.line});
  }
  return words;
}

/// Whether a note names the option, which longer names contain.
bool is_noted(const TrainingSetup& s, const std::string& option) {
  for (const std::vector<std::string>* list : {&s.matched, &s.unmodeled, &s.without_use})
    for (const std::string& note : *list)
      for (std::size_t at = note.find(option); at != std::string::npos; at = note.find(option, at + 1))
        if (at + option.size() == note.size() || note[at + option.size()] == ' ') return true;
  return false;
}

}  // namespace

MegatronArguments::MegatronArguments(const std::string& text, const std::string& file) : file_(file) {
  Argument* last = nullptr;
  for (const ShellWord& word : split_words(text, file)) {
    for (const char* script : {"pretrain_bert.py", "pretrain_t5.py", "pretrain_ict.py"})
      if (word.text.ends_with(script))
        refuse_all(fmt::format("line {} trains with {}, and only GPT is read", word.line, script),
                   "write the scenario by hand, from models/bert-base.yaml for example");
    if (!is_option(word.text)) {
      if (word.text.starts_with('$')) unset_.insert(word.text);
      if (last != nullptr) last->values.push_back(word.text);
      continue;
    }
    const auto equals = word.text.find('=');
    Argument argument{{}, word.line};
    if (equals != std::string::npos) argument.values.push_back(word.text.substr(equals + 1));
    last = &given_[word.text.substr(2, equals == std::string::npos ? equals : equals - 2)];
    *last = std::move(argument);  // The last one counts, as in argparse.
  }
  if (!has("num-layers"))
    refuse_all("there is no --num-layers, so these are not the arguments of Megatron-LM",
               "give the script that starts the training, or a file with its arguments");
}

void MegatronArguments::refuse(const std::string& name, std::string message, std::string help) const {
  throw InputError({{{file_, given_.at(name).line, 1}, "--" + name, std::move(message), std::move(help), "import"}});
}

void MegatronArguments::refuse_all(std::string message, std::string help) const {
  throw InputError({{{file_, 0, 0}, {}, std::move(message), std::move(help), "import"}});
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
  for (std::string value : given_.at(name).values) {
    std::replace_if(
        value.begin(), value.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
    for (std::string& part : split(value, ' '))
      if (!part.empty()) list.push_back(std::move(part));
  }
  return list;
}

std::optional<int> MegatronArguments::find_number(const std::string& name, int limit) {
  if (!has(name)) return {};
  const std::string text = word(name);
  if (text.starts_with('$'))
    refuse(name, fmt::format("the value of {} is not in the file", text), "write the number into the script");
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 1 || value > limit)
    refuse(name, fmt::format("'{}' is not a whole number from 1 to {}", text, limit), "correct the file");
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

void MegatronArguments::sort_others(TrainingSetup& s) const {
  std::string together;
  for (const auto& [name, argument] : given_) {
    if (used_.contains(name)) {
      if (!is_noted(s, "--" + name)) together += (together.empty() ? "" : " ") + written(name);
      continue;
    }
    const MegatronUse use = megatron_use(name);
    std::vector<std::string>& list = use == MegatronUse::Unmodeled    ? s.unmodeled
                                     : use == MegatronUse::WithoutUse ? s.without_use
                                                                      : s.unknown;
    list.push_back(written(name));
  }
  if (!together.empty()) s.matched.push_back("read with these: " + together);
  std::string variables;
  for (const std::string& name : unset_) variables += (variables.empty() ? "" : ", ") + name;
  if (!variables.empty())
    s.assumed.push_back(fmt::format("the file does not set {}; options in their values are not seen", variables));
}

void note_match(TrainingSetup& s, const std::string& option, const std::string& field, const std::string& value) {
  s.matched.push_back(fmt::format("--{} -> {}: {}", option, field, value));
}

}  // namespace stagecraft
