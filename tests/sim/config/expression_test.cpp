// Values, strength of operators and the place of every error.

#include "sim/config/expression.hpp"

#include <doctest/doctest.h>

#include <fmt/core.h>

namespace stagecraft::expression_test {
namespace {

using config::ExpressionValue;

std::optional<ExpressionValue> look_up(const std::string& name, const Where& where, config::Problems& problems) {
  if (name == "plan.stages") return 4.0;
  if (name == "list[1].x") return 7.0;
  if (name == "h100-sxm") return 80.0;
  if (name == "run.schedule") return std::string("1f1b");
  if (name == "fits") return true;
  problems.add(where, "axis", "unknown");
  return {};
}

/// The value as text, or "column: message" of the first problem. The text begins at column 1.
std::string result(const std::string& text) {
  config::Problems problems;
  const auto expression = config::parse_expression(text, {"file", 3, 1}, "axis", problems);
  std::optional<ExpressionValue> value;
  if (expression)
    value = config::evaluate(
        *expression, [&](const std::string& name, const Where& where) { return look_up(name, where, problems); },
        "axis", problems);
  if (!problems.empty()) {
    const Diagnostic& d = problems.list().front();
    CHECK(d.where.line == 3);
    return fmt::format("{}: {}", d.where.column, d.message);
  }
  REQUIRE(value);
  return config::to_text(*value);
}

}  // namespace

TEST_CASE("arithmetic has the usual strength and goes from left to right") {
  CHECK(result("1 + 2 * 3") == "7");
  CHECK(result("(1 + 2) * 3") == "9");
  CHECK(result("10 - 4 - 3") == "3");
  CHECK(result("64 / 4 / 2") == "8");
  CHECK(result("7 % 4 * 2") == "6");
  CHECK(result("-2 * -3") == "6");
  CHECK(result("2 - -3") == "5");
  CHECK(result("1e3 + .5 * 0") == "7: a number, a name or a parenthesis is needed, not '.'");
  CHECK(result("1e3 + 0.5") == "1000.5");
  CHECK(result("1 / 3") == "0.333333333333");  // Twelve digits.
  CHECK(result("0.1 + 0.2") == "0.3");
}

TEST_CASE("comparisons, not, and, or are weaker, in this order") {
  CHECK(result("1 + 1 == 2") == "true");
  CHECK(result("not 1 == 2") == "true");
  CHECK(result("true or false and false") == "true");  // `and` is stronger.
  CHECK(result("(true or false) and false") == "false");
  CHECK(result("not true or true") == "true");
  CHECK(result("not not fits") == "true");
  CHECK(result("2 <= 2 and 2 >= 2 and 1 < 2 and 2 > 1 and 1 != 2") == "true");
}

TEST_CASE("names are settings, texts stand in quotes") {
  CHECK(result("32 / plan.stages") == "8");
  CHECK(result("list[1].x % plan.stages") == "3");
  CHECK(result("`h100-sxm` + 1") == "81");
  CHECK(result("run.schedule == '1f1b'") == "true");
  CHECK(result("run.schedule != \"gpipe\" and fits") == "true");
  CHECK(result("run.schedule == 4") == "false");  // A text and a number differ.
  CHECK(result("android_free") == "1: unknown");  // It begins like `and`.
}

TEST_CASE("and and or leave out what does not matter") {
  CHECK(result("false and 1 / 0 > 1") == "false");
  CHECK(result("true or unknown_name") == "true");
}

TEST_CASE("a problem has the place of the part that is wrong") {
  CHECK(result("") == "1: a number, a name or a parenthesis is needed at the end");
  CHECK(result("2 *") == "4: a number, a name or a parenthesis is needed at the end");
  CHECK(result("2 3") == "3: an operator is needed before '3'");
  CHECK(result("1f1b") == "2: an operator is needed before 'f1b'");
  CHECK(result("2 * (3 + 4") == "5: this parenthesis is not closed");
  CHECK(result("2 * 3)") == "6: an operator is needed before ')'");
  CHECK(result("1 < 2 < 3") == "7: comparisons do not follow each other; join them with `and`");
  CHECK(result("plan.stages = 4") == "13: equality is written ==");
  CHECK(result("'open") == "1: a second ' is missing");
  CHECK(result("2 and") == "6: a number, a name or a parenthesis is needed at the end");
  CHECK(result("and 2") == "1: a value is needed before 'and'");
  CHECK(result("1 + plan.stage") == "5: unknown");
  CHECK(result("1 + run.schedule") == "5: '1f1b' is not a number");
  CHECK(result("plan.stages and true") == "1: '4' is neither true nor false");
  CHECK(result("1 / (plan.stages - 4)") == "3: this divides by zero");
  CHECK(result("1 % 0") == "3: this divides by zero");
  CHECK(result("1e300 * 1e300") == "7: the result is too large for a number");
  CHECK(result(std::string(501, '(')) == "501: an expression has at most 500 characters");
  CHECK(result(std::string(500, '(')) == "501: a number, a name or a parenthesis is needed at the end");
}

}  // namespace stagecraft::expression_test
