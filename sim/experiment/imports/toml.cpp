#include "sim/experiment/imports/toml.hpp"

#include <cctype>
#include <charconv>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

class TomlReader {
 public:
  TomlReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::map<std::string, TomlValue> read() {
    std::string table;
    for (skip(true); at_ < text_.size(); skip(true)) {
      if (peek() == '[') {
        table = table_name();
      } else {
        const int line = line_;
        const std::string key = (table.empty() ? "" : table + ".") + dotted_key();
        expect('=');
        Json value = read_value(0);
        if (!values_.emplace(key, TomlValue{std::move(value), line}).second)
          refuse(fmt::format("'{}' is given twice", key));
      }
      skip(false);
      if (at_ < text_.size() && peek() != '\n') refuse("there is more on the line than one value");
    }
    return std::move(values_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  [[noreturn]] void refuse(const std::string& message) const {
    throw InputError(
        {{{file_, line_, 1}, {}, message, "tables, and values such as 8, \"text\", true or [1, 2]", "toml"}});
  }

  /// Passes over white space and comments, also over line breaks if `lines`.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        line_ += c == '\n';
        ++at_;
      } else {
        return;
      }
    }
  }

  void expect(char c) {
    skip(false);
    if (peek() != c) refuse(fmt::format("'{}' is missing", c));
    ++at_;
  }

  std::string table_name() {
    ++at_;
    if (peek() == '[') refuse("arrays of tables are not read");
    const std::string name = dotted_key();
    expect(']');
    return name;
  }

  std::string dotted_key() {
    std::string key;
    for (;;) {
      skip(false);
      key += one_key();
      skip(false);
      if (peek() != '.') return key;
      key += '.';
      ++at_;
    }
  }

  std::string one_key() {
    if (peek() == '"' || peek() == '\'') return text_value();
    const std::size_t start = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' || peek() == '-') ++at_;
    if (at_ == start) refuse("a key is missing");
    return std::string(text_.substr(start, at_ - start));
  }

  std::string text_value() {
    const char quote = text_[at_++];
    std::string value;
    while (peek() != quote) {
      if (at_ >= text_.size() || peek() == '\n') refuse("a string is not closed");
      if (quote == '"' && peek() == '\\') {
        ++at_;
        const char c = peek();
        if (c != '"' && c != '\\' && c != 'n' && c != 't') refuse("a string has an escape that is not read");
        value += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      } else {
        value += peek();
      }
      ++at_;
    }
    ++at_;
    return value;
  }

  Json read_value(int depth) {
    constexpr int kDeepest = 50;
    if (depth > kDeepest) refuse("arrays are nested too deep");
    skip(false);
    if (text_.substr(at_).starts_with("\"\"\"") || text_.substr(at_).starts_with("'''"))
      refuse("strings of several lines are not read");
    if (peek() == '"' || peek() == '\'') return text_value();
    if (peek() == '[') return array_value(depth);
    if (peek() == '{') refuse("tables on one line are not read");
    const std::size_t start = at_;
    while (at_ < text_.size() && std::string_view(",]#\n\r \t").find(peek()) == std::string_view::npos) ++at_;
    return plain_value(std::string(text_.substr(start, at_ - start)));
  }

  Json array_value(int depth) {
    ++at_;
    JsonArray items;
    for (skip(true); peek() != ']'; skip(true)) {
      if (at_ >= text_.size()) refuse("an array is not closed");
      items.push_back(read_value(depth + 1));
      skip(true);
      if (peek() == ',')
        ++at_;
      else if (peek() != ']')
        refuse("a comma is missing");
    }
    ++at_;
    return items;
  }

  Json plain_value(std::string word) {
    if (word == "true" || word == "false") return word == "true";
    const std::string written = word;
    std::erase(word, '_');
    if (word.starts_with('+')) word.erase(0, 1);
    std::int64_t whole = 0;
    const char* const end = word.data() + word.size();
    if (const auto [stop, error] = std::from_chars(word.data(), end, whole); error == std::errc{} && stop == end)
      return whole;
    double number = 0;
    if (const auto [stop, error] = std::from_chars(word.data(), end, number); error == std::errc{} && stop == end)
      return number;
    refuse(fmt::format("'{}' is no value", written));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::map<std::string, TomlValue> values_;
};

}  // namespace

std::map<std::string, TomlValue> read_toml(std::string_view text, const std::string& file) {
  return TomlReader(text, file).read();
}

}  // namespace stagecraft
