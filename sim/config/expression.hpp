#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/config/value.hpp"

namespace stagecraft::config {

/// A number, a truth value or a text.
using ExpressionValue = std::variant<double, bool, std::string>;

/// A parsed expression such as `2 * plan.stages <= 16 and run.schedule != 'gpipe'`. From weak to strong: or; and; not;
/// == != < <= > >=; + -; * / %; the sign. Parentheses group, texts stand in single quotes, and a name with other
/// characters than letters, digits, `_`, `.` and `[ ]` stands between backticks.
struct Expression {
  enum class Kind { Number, Truth, Text, Name, Negate, Not, Binary };

  Kind kind = Kind::Number;
  Where where;         ///< The operator of Binary, else the first character.
  double number = 0;   ///< Number.
  bool truth = false;  ///< Truth.
  std::string text;    ///< Text, Name, and the operator of Binary.
  std::vector<Expression> operands;
};

/// Parses `text`, whose first character is at `begin`. Adds a problem at the place of the error.
std::optional<Expression> parse_expression(std::string_view text, const Where& begin, const std::string& path,
                                           Problems&);

/// The value of a name; nothing after a problem, which the function adds itself.
using NameLookup = std::function<std::optional<ExpressionValue>(const std::string& name, const Where& where)>;

/// The value of the expression. `and` and `or` do not evaluate their right side where the left one decides.
std::optional<ExpressionValue> evaluate(const Expression&, const NameLookup&, const std::string& path, Problems&);

/// "12", "0.5", "true" or the text itself.
std::string to_text(const ExpressionValue&);

/// Where the character at `offset` of a value written in one line stands.
Where place_in(const Value&, std::size_t offset);

}  // namespace stagecraft::config
