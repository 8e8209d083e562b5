// Parses expressions such as `2 * plan.stages <= 16`, which expression_value.cpp evaluates; sweeps have them.

#include "sim/config/expression.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/from_chars.hpp"

namespace stagecraft::config {
namespace {

using Kind = Expression::Kind;

constexpr std::size_t kLongest = 500;  // Characters, which also bounds the depth of parentheses.
constexpr std::string_view kSpaces = " \t\r\n";
constexpr const char* kForm = "such as 32 / plan.stages, or plan.stages > 1 and run.schedule != 'gpipe'";

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Thrown inside of this file only.
struct SyntaxError {
  std::size_t at;
  std::string message;
};

class Parser {
 public:
  Parser(std::string_view text, const Where& begin) : text_(text), begin_(begin) {}

  Expression parse() {
    if (text_.size() > kLongest)
      throw SyntaxError{kLongest, fmt::format("an expression has at most {} characters", kLongest)};
    Expression whole = alternatives();
    skip_spaces();
    if (at_ < text_.size()) throw SyntaxError{at_, fmt::format("an operator is needed before '{}'", rest_word())};
    return whole;
  }

  Where place(std::size_t at) const {
    Where where = begin_;
    where.column += static_cast<int>(std::min(at, text_.size()));
    return where;
  }

 private:
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }

  std::string rest_word() const {
    return std::string(text_.substr(at_, std::min(text_.find_first_of(kSpaces, at_), text_.size()) - at_));
  }

  /// The first of the operators that stands here; it is read.
  std::optional<std::string> take(std::initializer_list<std::string_view> operators) {
    skip_spaces();
    for (const std::string_view word : operators) {
      if (!text_.substr(at_).starts_with(word)) continue;
      const std::size_t end = at_ + word.size();
      const bool is_longer_name = begins_name(word.front()) && end < text_.size() &&
                                  (begins_name(text_[end]) || is_digit(text_[end]) || text_[end] == '.');
      if (is_longer_name) continue;
      operator_at_ = at_;
      at_ = end;
      return std::string(word);
    }
    return {};
  }

  Expression binary(std::string word, std::size_t at, Expression left, Expression right) const {
    Expression e{.kind = Kind::Binary, .where = place(at), .text = std::move(word), .operands = {}};
    e.operands.push_back(std::move(left));
    e.operands.push_back(std::move(right));
    return e;
  }

  /// Operands of one strength from left to right.
  Expression chain(std::initializer_list<std::string_view> operators, Expression (Parser::*operand)()) {
    Expression left = (this->*operand)();
    while (auto word = take(operators)) {
      const std::size_t at = operator_at_;
      left = binary(std::move(*word), at, std::move(left), (this->*operand)());
    }
    return left;
  }

  Expression alternatives() { return chain({"or"}, &Parser::conditions); }
  Expression conditions() { return chain({"and"}, &Parser::negation); }
  Expression sum() { return chain({"+", "-"}, &Parser::product); }
  Expression product() { return chain({"*", "/", "%"}, &Parser::signed_value); }

  Expression prefixed(Kind kind, std::size_t at, Expression operand) const {
    Expression e{.kind = kind, .where = place(at), .text = {}, .operands = {}};
    e.operands.push_back(std::move(operand));
    return e;
  }

  Expression negation() {
    if (!take({"not"})) return comparison();
    const std::size_t at = operator_at_;
    return prefixed(Kind::Not, at, negation());
  }

  std::optional<std::string> take_comparison() { return take({"==", "!=", "<=", ">=", "<", ">"}); }

  Expression comparison() {
    Expression left = sum();
    auto word = take_comparison();
    if (!word) {
      if (take({"="})) throw SyntaxError{operator_at_, "equality is written =="};
      return left;
    }
    const std::size_t at = operator_at_;
    left = binary(std::move(*word), at, std::move(left), sum());
    if (take_comparison())
      throw SyntaxError{operator_at_, "comparisons do not follow each other; join them with `and`"};
    return left;
  }

  Expression signed_value() {
    if (!take({"-"})) return single();
    const std::size_t at = operator_at_;
    return prefixed(Kind::Negate, at, signed_value());
  }

  /// A text in quotes or a name in backticks.
  Expression quoted(char quote, Kind kind) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw SyntaxError{at_, fmt::format("a second {} is missing", quote)};
    Expression e{
        .kind = kind, .where = place(at_), .text = std::string(text_.substr(at_ + 1, end - at_ - 1)), .operands = {}};
    at_ = end + 1;
    return e;
  }

  Expression name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]) ||
                                  std::string_view(".[]").find(text_[at_]) != std::string_view::npos))
      ++at_;
    Expression e{.kind = Kind::Name,
                 .where = place(begin),
                 .text = std::string(text_.substr(begin, at_ - begin)),
                 .operands = {}};
    if (e.text == "true" || e.text == "false") {
      e.kind = Kind::Truth;
      e.truth = e.text == "true";
    }
    if (e.text == "and" || e.text == "or" || e.text == "not")
      throw SyntaxError{begin, fmt::format("a value is needed before '{}'", e.text)};
    return e;
  }

  Expression single() {
    skip_spaces();
    if (at_ == text_.size()) throw SyntaxError{at_, "a number, a name or a parenthesis is needed at the end"};
    const char c = text_[at_];
    if (c == '\'' || c == '"') return quoted(c, Kind::Text);
    if (c == '`') return quoted(c, Kind::Name);
    if (begins_name(c)) return name();
    if (c == '(') {
      const std::size_t open = at_++;
      Expression inner = alternatives();
      if (!take({")"})) throw SyntaxError{open, "this parenthesis is not closed"};
      return inner;
    }
    double number = 0;
    const auto [end, error] = from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc{} || !is_digit(c))
      throw SyntaxError{at_, fmt::format("a number, a name or a parenthesis is needed, not '{}'", c)};
    Expression e{.kind = Kind::Number, .where = place(at_), .number = number, .text = {}, .operands = {}};
    at_ = end - text_.data();
    return e;
  }

  std::string_view text_;
  Where begin_;
  std::size_t at_ = 0, operator_at_ = 0;
};

}  // namespace

std::optional<Expression> parse_expression(std::string_view text, const Where& begin, const std::string& path,
                                           Problems& problems) {
  Parser parser(text, begin);
  try {
    return parser.parse();
  } catch (const SyntaxError& error) {
    problems.add(parser.place(error.at), path, error.message, kForm, "expression");
    return {};
  }
}

Where place_in(const Value& value, std::size_t offset) {
  Where where = value.where;
  where.column += static_cast<int>(offset) + (value.quoted ? 1 : 0);
  return where;
}

}  // namespace stagecraft::config
