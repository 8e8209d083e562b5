// Values that tokens of a Python file write out, and arithmetic of numbers.

#include "sim/interchange/imports/python_literals.hpp"

#include <cmath>
#include <utility>

#include "sim/core/from_chars.hpp"

namespace stagecraft {

PythonRef python_computed(const PythonToken& token) {
  auto value = std::make_shared<PythonValue>();
  value->is_computed = true;
  value->line = token.line, value->column = token.column;
  return value;
}

PythonRef python_literal(Json json, const PythonToken& token) {
  PythonRef value = python_computed(token);
  value->is_computed = false, value->plain = std::move(json);
  return value;
}

PythonRef python_number(const PythonToken& token) {
  const char *begin = token.text.data(), *end = begin + token.text.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = from_chars(begin, end, whole); error == std::errc{} && at == end)
    return python_literal(Json(whole), token);
  double value = 0;
  const auto [at, error] = from_chars(begin, end, value);
  return error == std::errc{} && at == end ? python_literal(Json(value), token) : python_computed(token);
}

std::optional<Json> python_constant(const PythonToken& token) {
  if (token.is("True")) return Json(true);
  if (token.is("False")) return Json(false);
  if (token.is("None")) return Json();
  return {};
}

PythonRef without_attribute(PythonRef value) {
  if (!value->is_attribute) return value;
  value = std::make_shared<PythonValue>(*value);
  value->is_attribute = false;
  return value;
}

namespace {

/// Null where an operand is no number.
std::optional<double> number_of(const PythonRef& value) {
  return value && value->plain.is_number() ? std::optional(value->plain.number()) : std::nullopt;
}

}  // namespace

PythonRef python_arithmetic(const PythonRef& left, const PythonRef& right, const PythonToken& mark) {
  const std::optional<double> a = number_of(left), b = number_of(right);
  if (!a || !b) return nullptr;
  const bool whole = left->plain.is_whole() && right->plain.is_whole();
  const double result = mark.is("+")    ? *a + *b
                        : mark.is("-")  ? *a - *b
                        : mark.is("*")  ? *a * *b
                        : mark.is("**") ? std::pow(*a, *b)
                        : *b == 0       ? NAN
                        : mark.is("//") ? std::floor(*a / *b)
                                        : *a / *b;
  if (!std::isfinite(result)) return nullptr;
  const bool is_integer = whole && !mark.is("/") && result == std::floor(result) && std::abs(result) < 9e15;
  return python_literal(is_integer ? Json(static_cast<std::int64_t>(result)) : Json(result), mark);
}

}  // namespace stagecraft
