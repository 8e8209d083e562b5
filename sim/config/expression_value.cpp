// Evaluates an expression that expression.cpp parsed, for the computed settings and the conditions of sweeps.

#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/config/expression.hpp"

namespace stagecraft::config {
namespace {

using Kind = Expression::Kind;

class Evaluator {
 public:
  Evaluator(const NameLookup& lookup, const std::string& path, Problems& problems)
      : lookup_(lookup), path_(path), problems_(problems) {}

  std::optional<ExpressionValue> value(const Expression& e) const {
    switch (e.kind) {
      case Kind::Number:
        return e.number;
      case Kind::Truth:
        return e.truth;
      case Kind::Text:
        return e.text;
      case Kind::Name:
        return lookup_(e.text, e.where);
      case Kind::Negate:
        if (const auto number = number_of(e.operands[0])) return -*number;
        return {};
      case Kind::Not:
        if (const auto truth = truth_of(e.operands[0])) return !*truth;
        return {};
      case Kind::Binary:
        return binary(e);
    }
    return {};
  }

 private:
  std::nullopt_t refuse(const Where& where, std::string message, std::string help = {}) const {
    problems_.add(where, path_, std::move(message), std::move(help), "expression");
    return std::nullopt;
  }

  std::optional<double> number_of(const Expression& e) const {
    const auto found_value = value(e);
    if (!found_value) return {};
    if (const double* number = std::get_if<double>(&*found_value)) return *number;
    return refuse(e.where, fmt::format("'{}' is not a number", to_text(*found_value)));
  }

  std::optional<bool> truth_of(const Expression& e) const {
    const auto found_value = value(e);
    if (!found_value) return {};
    if (const bool* truth = std::get_if<bool>(&*found_value)) return *truth;
    return refuse(e.where, fmt::format("'{}' is neither true nor false", to_text(*found_value)),
                  "compare it with something");
  }

  std::optional<ExpressionValue> binary(const Expression& e) const {
    const Expression &left = e.operands[0], &right = e.operands[1];
    if (e.text == "and" || e.text == "or") {
      const auto first = truth_of(left);
      if (!first || *first == (e.text == "or")) return first ? std::optional<ExpressionValue>(*first) : std::nullopt;
      const auto second = truth_of(right);
      return second ? std::optional<ExpressionValue>(*second) : std::nullopt;
    }
    if (e.text == "==" || e.text == "!=") {
      const auto first = value(left), second = value(right);
      if (!first || !second) return {};
      return (*first == *second) == (e.text == "==");
    }
    const auto first = number_of(left), second = number_of(right);
    if (!first || !second) return {};
    return arithmetic(e, *first, *second);
  }

  std::optional<ExpressionValue> arithmetic(const Expression& e, double a, double b) const {
    if ((e.text == "/" || e.text == "%") && b == 0) return refuse(e.where, "this divides by zero");
    if (e.text == "<") return a < b;
    if (e.text == "<=") return a <= b;
    if (e.text == ">") return a > b;
    if (e.text == ">=") return a >= b;
    const double result = e.text == "+"   ? a + b
                          : e.text == "-" ? a - b
                          : e.text == "*" ? a * b
                          : e.text == "/" ? a / b
                                          : std::fmod(a, b);
    if (!std::isfinite(result)) return refuse(e.where, "the result is too large for a number");
    return result;
  }

  const NameLookup& lookup_;
  const std::string& path_;
  Problems& problems_;
};

}  // namespace

std::optional<ExpressionValue> evaluate(const Expression& e, const NameLookup& lookup, const std::string& path,
                                        Problems& problems) {
  return Evaluator(lookup, path, problems).value(e);
}

std::string to_text(const ExpressionValue& value) {
  if (const double* number = std::get_if<double>(&value)) return fmt::format("{:.12g}", *number);
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return std::get<std::string>(value);
}

}  // namespace stagecraft::config
