// Expands the lists of megatron_option_data.cpp into a table of Megatron-LM's options, finds one by name, suggests one
// for a misspelt name, and says which words an option takes.

#include "sim/interchange/imports/megatron_options.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft {
namespace {

using Options = std::map<std::string, MegatronOption>;

void set_word(std::string_view text, MegatronOption& option) {
  STAGECRAFT_CHECK(text.empty() || text == "int" || text == "float" || text == "pattern" || text.starts_with('{'));
  if (text == "int") option.word = MegatronWord::Whole;
  if (text == "float") option.word = MegatronWord::Real;
  if (text == "pattern") option.word = MegatronWord::Pattern;
  if (!text.starts_with('{')) return;
  option.word = MegatronWord::Choice;
  for (const std::string& choice : split(text.substr(1, text.size() - 2), ',')) {
    const std::size_t at = std::min(choice.find('@'), choice.size());
    option.choices.push_back(choice.substr(0, at));
    option.choices_since.push_back(choice.substr(std::min(at + 1, choice.size())));
  }
}

/// "@0.12-0.15".
void set_releases(std::string_view text, MegatronOption& option) {
  if (text.empty()) return;
  const std::size_t dash = std::min(text.find('-'), text.size());
  option.since = text.substr(1, dash - 1);
  option.until = text.substr(std::min(dash + 1, text.size()));
}

/// "name:{a,b}": see megatron_option_data.cpp.
void add_option(std::string_view word, const MegatronOptionList& list, Options& options) {
  const std::size_t name_end = std::min(word.find_first_of("@:#+*"), word.size());
  const std::size_t end = word.find_first_of(":#+*");
  MegatronOption option{.use = list.use, .older = list.older};
  set_releases(word.substr(name_end, std::min(end, word.size()) - name_end), option);
  if (end != std::string_view::npos) {
    constexpr int kAny = std::numeric_limits<int>::max();
    std::string_view rest = word.substr(end + 1);
    const char count = word[end];
    option.min_words = count == '*' ? 0 : 1;
    option.max_words = count == '+' || count == '*' ? kAny : 1;
    if (count == '#') option.min_words = option.max_words = read_number(rest).value_or(1);
    const std::size_t equals = std::min(rest.find('='), rest.size());
    set_word(rest.substr(0, equals), option);
    option.fallback = rest.substr(std::min(equals + 1, rest.size()));
  }
  const bool is_new = options.emplace(word.substr(0, name_end), std::move(option)).second;
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

/// As Python's int() reads it: "-1", "+8" and "1_000".
bool is_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && is_digit(text.front()) && is_digit(text.back()) && text.find("__") == std::string::npos &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_digit(c) || c == '_'; });
}

/// As Python's float() reads it: whole numbers, "1.", ".5", "1e-5" and "inf".
bool is_real(std::string_view text) {
  if (is_whole(text)) return true;
  if (text.starts_with("+-")) return false;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && stop == text.data() + text.size();
}

}  // namespace

bool MegatronOption::takes(const std::string& given) const {
  switch (word) {
    case MegatronWord::Any:
      return true;
    case MegatronWord::Whole:
      return is_whole(given);
    case MegatronWord::Real:
      return is_real(given);
    case MegatronWord::Pattern:
      return is_whole(given) || (given.find('[') != std::string::npos &&
                                 given.find_first_not_of(",0123456789[]()+*") == std::string::npos);
    case MegatronWord::Choice:
      return std::find(choices.begin(), choices.end(), given) != choices.end();
  }
  return true;
}

bool MegatronOption::is_in(std::string_view release) const {
  if (older && until.empty()) return false;
  return (since.empty() || !is_before(release, since)) && (until.empty() || !is_before(until, release));
}

std::string MegatronOption::since_of(const std::string& choice) const {
  const auto at = std::find(choices.begin(), choices.end(), choice);
  return at == choices.end() ? "" : choices_since[at - choices.begin()];
}

std::span<const std::string_view> megatron_releases() { return software_stack("megatron-core").releases; }

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
