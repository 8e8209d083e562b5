// Divides Python files into statements of tokens; python_values.cpp evaluates them.

#include "sim/interchange/imports/python_tokens.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

class PythonTokenizer {
 public:
  PythonTokenizer(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<PythonLine> lines() {
    while (at_ < text_.size()) read_line();
    if (!open_.empty()) refuse_python(file_, line_, 1, fmt::format("'{}' is not closed", open_.back()), "close it");
    return std::move(lines_);
  }

 private:
  int column() const { return static_cast<int>(at_ - begin_) + 1; }

  void end_line() { ++line_, begin_ = ++at_; }

  void read_line() {
    PythonLine line;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    line.indent = column() - 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        end_line();
        if (open_.empty()) break;
      } else if (c == '\\' && (text_.compare(at_ + 1, 1, "\n") == 0 || text_.compare(at_ + 1, 2, "\r\n") == 0)) {
        at_ = text_.find('\n', at_), end_line();
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == ';' && open_.empty()) {
        ++at_;
        push(std::exchange(line, {line.indent + (begins_block(line) ? 1 : 0), {}}));
      } else {
        line.tokens.push_back(token());
      }
    }
    push(std::move(line));
  }

  /// In "if a: b = 1; c = 2", all that follows is in the block.
  static bool begins_block(const PythonLine& line) {
    constexpr std::string_view kWords[] = {"if",     "elif",    "else", "for",   "while", "with", "try",
                                           "except", "finally", "def",  "class", "async", "match"};
    return !line.tokens.empty() &&
           std::any_of(std::begin(kWords), std::end(kWords), [&](auto word) { return line.tokens[0].is(word); });
  }

  void push(PythonLine line) {
    if (!line.tokens.empty()) lines_.push_back(std::move(line));
  }

  PythonToken token() {
    const char c = text_[at_];
    const std::size_t start = at_;
    const int where = column();
    if (const std::optional<PythonToken> quoted = string()) return *quoted;
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80)) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      return {PythonToken::Kind::Name, text_.substr(start, at_ - start), line_, where};
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    constexpr std::string_view kLong[] = {
        "**=", "//=", "**", "//", "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", ":="};
    for (const std::string_view mark : kLong)
      if (text_.compare(at_, mark.size(), mark) == 0) {
        at_ += mark.size();
        return {PythonToken::Kind::Mark, std::string(mark), line_, where};
      }
    ++at_;
    if (c == '(' || c == '[' || c == '{') open_ += c;
    if (c == ')' || c == ']' || c == '}') {
      const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_.empty() || open_.back() != opening)
        refuse_python(file_, line_, where, fmt::format("this is no Python: '{}' closes nothing", c),
                      "correct the file");
      open_.pop_back();
    }
    return {PythonToken::Kind::Mark, std::string(1, c), line_, where};
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }

  PythonToken number() {
    const std::size_t start = at_;
    const int where = column();
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || text_[at_] == '.' ||
            ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))))
      ++at_;
    std::string digits = text_.substr(start, at_ - start);
    std::erase(digits, '_');
    return {PythonToken::Kind::Number, digits, line_, where};
  }

  /// A string with its prefix. What a formatted one says is computed, and it is a mark here.
  std::optional<PythonToken> string() {
    std::size_t at = at_;
    while (at < text_.size() && at - at_ < 2 && std::isalpha(static_cast<unsigned char>(text_[at]))) ++at;
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return {};
    const std::string prefix = text_.substr(at_, at - at_);
    PythonToken token{
        prefix.find_first_of("fF") == std::string::npos ? PythonToken::Kind::String : PythonToken::Kind::Mark, "",
        line_, column()};
    const std::string quote(1, text_[at]);
    const std::string end = text_.compare(at, 3, quote + quote + quote) == 0 ? quote + quote + quote : quote;
    at_ = at + end.size();
    for (; at_ < text_.size() && text_.compare(at_, end.size(), end) != 0; ++at_) {
      if (text_[at_] == '\n' && end.size() == 1) break;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) token.text += text_[at_++];
      token.text += text_[at_];
      if (text_[at_] == '\n') ++line_, begin_ = at_ + 1;
    }
    if (text_.compare(at_, end.size(), end) != 0)
      refuse_python(file_, token.line, token.column, "this is no Python: a string has no end", "correct the file");
    at_ += end.size();
    if (token.kind == PythonToken::Kind::Mark) token.text = "f\"\"";
    return token;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0, begin_ = 0;  ///< Here, and where the line of text begins.
  int line_ = 1;
  std::string open_;  ///< Brackets that are not closed yet.
  std::vector<PythonLine> lines_;
};

}  // namespace

void refuse_python(const std::string& file, int line, int column, std::string message, std::string help) {
  throw InputError({{{file, line, column}, {}, std::move(message), std::move(help), "import"}});
}

std::vector<PythonLine> python_lines(const std::string& text, const std::string& file) {
  return PythonTokenizer(text, file).lines();
}

std::size_t assignment_target(const std::vector<PythonToken>& line) {
  constexpr std::string_view kKeywords[] = {"if", "else", "for", "while", "with", "try", "finally", "lambda", "del"};
  if (std::any_of(std::begin(kKeywords), std::end(kKeywords), [&](auto word) { return line[0].is(word); })) return 0;
  std::size_t i = 0;
  while (i < line.size() && line[i].kind == PythonToken::Kind::Name && i + 2 < line.size() && line[i + 1].is("."))
    i += 2;
  if (i >= line.size() || line[i].kind != PythonToken::Kind::Name) return 0;
  const std::size_t size = ++i;
  if (i < line.size() && line[i].is(":"))
    while (i < line.size() && !line[i].is("=")) ++i;
  return i < line.size() && line[i].is("=") && last_assignment(line) == i ? size : 0;
}

std::size_t last_assignment(const std::vector<PythonToken>& line) {
  std::size_t last = line.size();
  int open = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    open += line[i].is("(") || line[i].is("[") || line[i].is("{");
    open -= line[i].is(")") || line[i].is("]") || line[i].is("}");
    const bool assigns = line[i].is("=") || line[i].is("+=") || line[i].is("-=") || line[i].is("*=") ||
                         line[i].is("/=") || line[i].is("//=") || line[i].is("**=") || line[i].is(":=");
    if (open == 0 && assigns) last = i;
  }
  return last;
}

}  // namespace stagecraft
