// Expands the lists of megatron_option_data.cpp into a table of Megatron-LM's options, finds one by name, and suggests
// one for a misspelt name.

#include "sim/interchange/imports/megatron_options.hpp"

#include <limits>
#include <map>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using Options = std::map<std::string, MegatronOption>;

/// "name:{a,b}": see megatron_option_data.cpp.
void add_option(std::string_view word, const MegatronOptionList& list, Options& options) {
  const std::size_t end = word.find_first_of(":#+*");
  MegatronOption option{.use = list.use, .older = list.older, .min_words = 0, .max_words = 0, .choices = {}};
  if (end != std::string_view::npos) {
    constexpr int kAny = std::numeric_limits<int>::max();
    std::string_view rest = word.substr(end + 1);
    const char count = word[end];
    option.min_words = count == '*' ? 0 : 1;
    option.max_words = count == '+' || count == '*' ? kAny : 1;
    if (count == '#') option.min_words = option.max_words = read_number(rest).value_or(1);
    if (rest.starts_with('{')) option.choices = split(rest.substr(1, rest.size() - 2), ',');
  }
  const bool is_new = options.emplace(word.substr(0, end), std::move(option)).second;
  STAGECRAFT_CHECK(is_new);
}

const Options& all_options() {
  static const Options options = [] {
    Options list;
    for (const MegatronOptionList& part : megatron_option_lists())
      for (const std::string& line : split(part.text, '\n'))
        for (const std::string& word : split(line, ' '))
          if (!word.empty()) add_option(word, part, list);
    return list;
  }();
  return options;
}

}  // namespace

const MegatronOption* find_megatron_option(const std::string& name) {
  const auto entry = all_options().find(name);
  return entry == all_options().end() ? nullptr : &entry->second;
}

std::string suggest_megatron_option(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [option_name, option] : all_options()) names.push_back("--" + option_name);
  return suggest("--" + name, names);
}

}  // namespace stagecraft
