// Splits a shell script into commands and words as a shell would, with variables, arrays and arithmetic but without
// running anything; megatron_arguments.cpp and torchtitan_command.cpp call it.

#include "sim/interchange/imports/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/shell_arithmetic.hpp"
#include "sim/interchange/imports/shell_branches.hpp"
#include "sim/interchange/imports/shell_conditions.hpp"

namespace stagecraft {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Values that contain each other would grow without end.
constexpr std::size_t kLongestWord = 1 << 16, kMostCharacters = 1 << 24;

class ShellReader {
 public:
  explicit ShellReader(std::string_view text) : text_(text) {}

  ShellScript read() {
    while (at_ < text_.size()) step(text_[at_]);
    end_array();
    end_command();
    for (const std::string& name : array_names_)
      if (!used_.contains(name)) note_branches(name, text_of(arrays_[name])), script_.commands.push_back(arrays_[name]);
    return std::move(script_);
  }

 private:
  void step(char c) {
    if (at_pattern_) {
      skip_pattern(c);
    } else if (c == '\\' && at_ + 1 < text_.size()) {
      escape();
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '$' || c == '`') {
      substitute(true);
    } else if (c == '#' && !in_word_) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '<' || c == '>') {
      redirection();
    } else if (c == '(' && begins_array()) {
      ++at_;
    } else if (c == ')' && array_) {
      end_array();
      ++at_;
    } else if (is_space(c)) {
      end_word();
      if (c == '\n' && !array_ && !is_list()) end_command(), joins_ += c;
      line_ += c == '\n';
      ++at_;
    } else if (is_list() && (c == '(' || c == ')' || (c == '|' && in_word_))) {
      add(c);
      ++at_;
    } else if (c == '(' || c == ')' || c == ';' || c == '&' || c == '|') {
      end_word();
      if (!array_) end_command(), joins_ += c;
      const std::size_t length = end_of_case();
      at_pattern_ = length > 0;
      at_ += at_pattern_ ? length : 1;
    } else {
      add(c);
      ++at_;
    }
  }

  /// Length of what ends a branch of `case` here: 2 of ;; and ;&, 3 of ;;&, after which the next one may be taken too.
  std::size_t end_of_case() {
    const std::string_view rest = text_.substr(at_);
    if (!branches_.in_case() || !(rest.starts_with(";;") || rest.starts_with(";&"))) return 0;
    const std::size_t length = rest.starts_with(";;&") ? 3 : 2;
    if (rest[length - 1] == '&') branches_.fall_through();
    return length;
  }

  /// Whether the command begins with an option: it is a list of arguments, and a shell does not read it.
  bool is_list() const { return !array_ && !command_.empty() && command_.front().text.starts_with("--"); }

  /// Passes over the patterns of the next branch of `case`, or over the word that ends it.
  void skip_pattern(char c) {
    const std::string_view rest = text_.substr(at_);
    const bool ends = rest.starts_with("esac") && (rest.size() == 4 || !is_name_character(rest[4]));
    std::size_t length = ends ? 4 : 1;
    if (c == '#') {
      length = std::min(rest.find('\n'), rest.size());
    } else if (!is_space(c) && !ends) {
      length = std::min(rest.find(')'), rest.size() - 1) + 1;
      const std::string_view patterns = rest.substr(0, length - 1);
      branches_.take_if(branches_.takes_next() ? std::nullopt : shell_pattern(patterns, branches_.word()));
    }
    if (ends) branches_.close();
    at_pattern_ = c == '#' || is_space(c);
    for (const std::size_t end = at_ + length; at_ < end; ++at_) line_ += text_[at_] == '\n';
  }

  /// Whether the word begins or ends a branch; a shell reads such words only where a command begins.
  bool is_branch_word() {
    if (array_) return false;
    if (!command_.empty() && command_.front().text == "case" && word_ == "in") {
      branches_.open_case(command_.size() > 1 ? command_.back().text : "");
      command_.clear();
      return at_pattern_ = true;
    }
    if (!command_.empty()) return false;
    if (word_ == "if") {
      branches_.open_if(script_.commands.size(), joins_.size());
      return true;
    }
    const bool in_if = branches_.in_if();
    if (in_if && word_ == "then") {
      branches_.take_if(condition());
    } else if (in_if && word_ == "else") {
      branches_.take_if(true);
    } else if (in_if && word_ == "elif") {
      branches_.open_elif(script_.commands.size(), joins_.size());
    } else if ((in_if || branches_.in_case()) && word_ == (in_if ? "fi" : "esac")) {
      branches_.close();
    } else {
      return word_ == "then" || word_ == "do" || word_ == "{";
    }
    return true;
  }

  /// Whether the `if` that is being read holds, as far as its commands are comparisons.
  std::optional<bool> condition() {
    return shell_condition(std::span(script_.commands).subspan(branches_.command()),
                           std::string_view(joins_).substr(branches_.joins()), script_.taken_as_empty);
  }

  void assign(const std::string& name, std::string given) {
    const auto value = script_.values.find(name);
    const bool is_set = value != script_.values.end();
    if (branches_.replaces(name, is_set ? std::optional(value->second) : std::nullopt, given))
      script_.values[name] = std::move(given);
  }

  void note_branches(const std::string& name, const std::string& value) {
    std::vector<std::string> values = branches_.values_of(name, value);
    if (!values.empty()) script_.of_branches[name] = std::move(values);
  }

  /// A backslash at the end of a line joins it with the next.
  void escape() {
    const std::size_t next = text_[at_ + 1] == '\r' ? at_ + 2 : at_ + 1;
    if (next < text_.size() && text_[next] == '\n') {
      end_word();
      ++line_;
      at_ = next + 1;
      return;
    }
    add(text_[at_ + 1]);
    at_ += 2;
  }

  void add(char c) {
    in_word_ = true;
    if (word_.size() == kLongestWord) too_long();
    word_ += c;
  }

  [[noreturn]] static void too_long() {
    throw InputError("the words are too long where variables have their values",
                     "give the arguments themselves in place of the script");
  }

  void quoted(char quote) {
    in_word_ = is_quoted_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != quote;) {
      line_ += text_[at_] == '\n';
      if (quote == '"' && (text_[at_] == '$' || text_[at_] == '`')) {
        substitute(false);
      } else {
        if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) line_ += text_[++at_] == '\n';
        add(text_[at_++]);
      }
    }
    if (at_ < text_.size()) ++at_;
  }

  /// The length of "<path to data>", which stands for a value; 0 where there is none, as in "<in 2>errors".
  std::size_t placeholder() const {
    const std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
    const std::size_t end = line.find('>');
    if (line[0] != '<' || end == std::string_view::npos || end < 2 || !is_name_character(line[1])) return 0;
    const std::size_t digits = line.find_last_not_of("0123456789", end - 1);
    return is_space(line[digits]) ? 0 : end + 1;
  }

  /// "2>&1", "> file": neither is an argument. Between [[ and ]] these signs compare.
  void redirection() {
    if (in_comparison_) {
      end_word();
      add(text_[at_++]);
      return end_word();
    }
    if (const std::size_t length = placeholder(); length > 0) {
      for (const std::size_t stop = at_ + length; at_ < stop; ++at_)
        if (!is_space(text_[at_])) add(text_[at_]);
      return;
    }
    if (in_word_ && word_.find_first_not_of("0123456789") == std::string::npos) word_.clear(), in_word_ = false;
    end_word();
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&')) ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != ')' && text_[at_] != ';')
      at_ = text_.substr(at_).starts_with("$(") ? matching_end(at_ + 1) : at_ + 1;
  }

  /// `splits`: white space in a value ends words, as it does outside of quotes.
  void substitute(bool splits) {
    const std::size_t start = at_;
    if (text_[at_] == '`') {
      const std::size_t end = text_.find('`', at_ + 1);
      at_ = end == std::string_view::npos ? text_.size() : end + 1;
      return as_written(start);
    }
    if (text_.substr(at_).starts_with("$(")) {
      const bool computes = text_.substr(at_).starts_with("$((");
      at_ = matching_end(at_ + 1);
      const std::string_view inside = text_.substr(start + 2, at_ - start - 3);
      const std::optional<std::int64_t> value =
          computes ? shell_arithmetic(with_values(default_value(std::string(inside)))) : std::nullopt;
      if (!value) return as_written(start);
      for (const char c : std::to_string(*value)) add(c);
      return;
    }
    variable(splits);
  }

  void as_written(std::size_t start) {
    for (const char c : text_.substr(start, at_ - start)) line_ += c == '\n', add(c);
  }

  /// The place after the parenthesis that closes the one at `open`.
  std::size_t matching_end(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < text_.size(); ++i) {
      depth += (text_[i] == '(') - (text_[i] == ')');
      if (depth == 0) return i + 1;
    }
    return text_.size();
  }

  /// Arithmetic whose names without a dollar sign are replaced by their values.
  std::string with_values(std::string_view arithmetic) {
    std::string text;
    for (std::size_t i = 0; i < arithmetic.size() && text.size() < kLongestWord;) {
      const std::size_t start = i;
      while (i < arithmetic.size() && is_name_character(arithmetic[i])) ++i;
      const auto value = script_.values.find(std::string(arithmetic.substr(start, i - start)));
      if (value != script_.values.end())
        text += value->second, note_branches(value->first, value->second);
      else if (i > start)
        text += arithmetic.substr(start, i - start);
      else
        text += arithmetic[i++];
    }
    return text;
  }

  /// $NAME, ${NAME}, ${NAME:-default}, and ${NAME[@]}; other forms change the value, and stay as they are written.
  void variable(bool splits) {
    const std::size_t start = at_++;
    const bool braces = at_ < text_.size() && text_[at_] == '{';
    if (braces) ++at_;
    const std::size_t name_start = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    const std::string name(text_.substr(name_start, at_ - name_start));
    std::string rest;
    if (braces) {
      const std::size_t stop = closing_brace(at_);
      rest = text_.substr(at_, stop - at_);
      at_ = stop == text_.size() ? stop : stop + 1;
    }
    in_word_ = true;
    if ((rest == "[@]" || rest == "[*]") && arrays_.contains(name)) return use_array(name);
    const auto entry = script_.values.find(name);
    const bool asks = rest.starts_with(':');  // Whether the value is empty too.
    const char sign = rest.size() > asks ? rest[asks] : '\0';
    const bool has_default = sign == '-' || sign == '=';
    const bool is_set = entry != script_.values.end() && !(has_default && asks && entry->second.empty());
    if (is_set && (rest.empty() || has_default || sign == '?')) {
      note_branches(name, entry->second);
      add_value(entry->second, splits);
    } else if (has_default) {
      add_value(default_value(rest.substr(asks + 1)), splits);
    } else {
      as_written(start);  // It stays one word, as do changed values such as ${NAME%.txt}.
    }
  }

  /// What a command would print is not known, so that its text stays one word.
  void add_value(const std::string& value, bool splits) {
    const bool is_command = value.find("$(") != std::string::npos || value.find('`') != std::string::npos;
    for (const char c : value)
      if (splits && !is_command && is_space(c))
        end_word();
      else
        add(c);
  }

  /// The place of the "}" that ends what begins before `at`; the end of the text where there is none.
  std::size_t closing_brace(std::size_t at) const {
    for (int depth = 0; at < text_.size(); ++at) {
      if (text_[at] == '}' && depth-- == 0) return at;
      depth += text_[at] == '{';
    }
    return text_.size();
  }

  /// A default without its quotes, and with the values of its variables.
  std::string default_value(const std::string& text) {
    constexpr int kDeepest = 20;
    if (depth_ == kDeepest) return text;
    ShellReader inner(text);
    inner.depth_ = depth_ + 1;
    inner.script_ = std::move(script_);
    inner.branches_ = std::move(branches_);
    while (inner.at_ < text.size()) {
      const char c = text[inner.at_];
      if (c == '\'' || c == '"')
        inner.quoted(c);
      else if (c == '$' || c == '`')
        inner.substitute(false);
      else
        inner.add(c), ++inner.at_;
    }
    script_ = std::move(inner.script_);
    branches_ = std::move(inner.branches_);
    return std::move(inner.word_);
  }

  /// The words of the array stand where it is used; in the value of a variable they are one text.
  void use_array(const std::string& name) {
    note_branches(name, text_of(arrays_.at(name)));
    if (!array_ && !is_quoted_command() && assigned_name()) {
      if (!branches_.is_skipping()) used_.insert(name);
      for (const char c : text_of(arrays_.at(name))) add(c);
      return;
    }
    if (word_.empty()) in_word_ = false;
    end_word();
    if (array_ != name && !branches_.is_skipping()) used_.insert(name);
    const ShellCommand words = arrays_.at(name);
    for (const ShellWord& word : words) keep(word);
  }

  static std::string text_of(const ShellCommand& words) {
    std::string text;
    for (const ShellWord& word : words) text += (text.empty() ? "" : " ") + word.text;
    return text;
  }

  void keep(ShellWord word) {
    count(word.text.size() + sizeof(ShellWord));
    (array_ ? array_words_ : command_).push_back(std::move(word));
  }

  void count(std::size_t characters) {
    characters_ += characters;
    if (characters_ > kMostCharacters) too_long();
  }

  /// The name of "NAME=" or "NAME+=", which the word begins with.
  std::optional<std::string> assigned_name() const {
    const std::size_t equals = word_.find('=');
    if (equals == std::string::npos || equals == 0 || !is_name_character(word_[0])) return {};
    const std::string name = word_.substr(0, equals - (word_[equals - 1] == '+'));
    return std::all_of(name.begin(), name.end(), is_name_character) ? std::optional(name) : std::nullopt;
  }

  /// Whether the word is a command for another shell, after its option c: bash -lc "NAME=1 program --option".
  bool is_quoted_command() const {
    if (command_.empty()) return false;
    const std::string& before = command_.back().text;
    return before.size() > 1 && before.front() == '-' && before[1] != '-' && before.back() == 'c';
  }

  bool begins_array() {
    if (!in_word_ || array_ || !word_.ends_with('=') || !assigned_name()) return false;
    const std::string name = *assigned_name();
    adds_ = word_.ends_with("+=");
    if (!branches_.is_skipping() && arrays_.try_emplace(name).second) array_names_.push_back(name);
    array_ = name;
    word_.clear();
    in_word_ = false;
    return true;
  }

  void end_array() {
    end_word();
    if (!array_) return;
    if (!branches_.is_skipping()) {
      ShellCommand& words = arrays_[*array_];
      const std::string before = branches_.is_unsure() ? text_of(words) : "";
      if (!adds_) words.clear();  // Only now: NAME=("${NAME[@]}" more) has the words from before.
      words.insert(words.end(), array_words_.begin(), array_words_.end());
      const bool was_set = branches_.has_set(*array_);
      const std::string given = branches_.is_unsure() ? text_of(words) : "";
      count(given.size());
      branches_.replaces(*array_, was_set ? std::optional(before) : std::nullopt, given);
    }
    array_words_.clear();
    array_.reset();
  }

  void end_word() {
    if (!in_word_) return;
    const std::optional<std::string> name = array_ || is_quoted_command() ? std::nullopt : assigned_name();
    if (name) {
      if (!branches_.is_skipping()) assign(*name, given_value(*name));
    } else if ((!word_.empty() || keeps_empty_words()) && !is_branch_word()) {
      if (!array_ && command_.empty() && word_ == "[[") in_comparison_ = true;
      if (word_ == "]]") in_comparison_ = false;
      keep({std::move(word_), line_});
    }
    word_.clear();
    in_word_ = is_quoted_ = false;
  }

  /// The value after "NAME=" or "NAME+=".
  std::string given_value(const std::string& name) {
    const std::size_t equals = word_.find('=');
    std::string given = word_.substr(equals + 1);
    const auto before = script_.values.find(name);
    if (word_[equals - 1] == '+' && before != script_.values.end()) given = before->second + given;
    if (given.size() > kLongestWord) too_long();
    count(given.size());
    return given;
  }

  /// Between [[ and ]] a word that is empty counts, and in other conditions it does where it has quotes.
  bool keeps_empty_words() const {
    if (in_comparison_) return true;
    return is_quoted_ && !array_ && !command_.empty() &&
           (command_.front().text == "[" || command_.front().text == "test");
  }

  void end_command() {
    end_word();
    if (branches_.is_skipping()) command_.clear();
    if (command_.empty()) return;
    if (command_.front().text == "unset")
      for (const ShellWord& word : command_) assign(word.text, "");
    script_.commands.push_back(std::exchange(command_, {}));
  }

  std::string_view text_;
  std::size_t at_ = 0, characters_ = 0;
  int line_ = 1, depth_ = 0;                  ///< Defaults within defaults.
  bool at_pattern_ = false;                   ///< Before the patterns of a branch of `case`.
  bool adds_ = false;                         ///< Whether the array that is being read is added to the words before.
  bool in_word_ = false, is_quoted_ = false;  ///< Whether a part of the word has quotes.
  bool in_comparison_ = false;                ///< Between [[ and ]].
  std::string word_, joins_;                  ///< `joins_`: what ended each command, such as && and a line break.
  ShellCommand command_, array_words_;
  std::optional<std::string> array_;  ///< The array that is being read.
  std::map<std::string, ShellCommand> arrays_;
  std::vector<std::string> array_names_;  ///< In the order of the script.
  std::set<std::string> used_;
  ShellBranches branches_;
  ShellScript script_;
};

}  // namespace

ShellScript read_shell(std::string_view script) { return ShellReader(script).read(); }

std::vector<std::string> shell_notes(const ShellScript& script) {
  std::vector<std::string> notes;
  for (const auto& [name, values] : script.of_branches) {
    const bool is_list = std::any_of(values.begin(), values.end(), [](const std::string& value) {
      return std::any_of(value.begin(), value.end(), is_space);
    });
    const std::string last = is_list ? fmt::format("the last of {}", values.size())
                                     : fmt::format("'{}', the last of '{}'", values.back(), join(values, "', '"));
    notes.push_back(fmt::format("the file does not say which branch is taken, so {} is {}", name, last));
  }
  for (const std::string& name : script.taken_as_empty)
    notes.push_back(fmt::format("the file does not set {}, and asks whether it is empty: it is taken as empty", name));
  return notes;
}

}  // namespace stagecraft
