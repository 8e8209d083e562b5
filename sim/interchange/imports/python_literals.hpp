#pragma once

#include <memory>
#include <optional>

#include "sim/interchange/imports/python_tokens.hpp"
#include "sim/interchange/imports/python_values.hpp"

namespace stagecraft {

using PythonRef = std::shared_ptr<PythonValue>;

/// A value that only running the file tells.
PythonRef python_computed(const PythonToken&);
PythonRef python_literal(Json, const PythonToken&);
/// Computed for what is no number that a double holds.
PythonRef python_number(const PythonToken&);
/// True, False and None.
std::optional<Json> python_constant(const PythonToken&);

/// A part of one object that another gets: values of it that the file does not assign are computed.
PythonRef without_attribute(PythonRef);

/// left + right and so on, by the mark between them. Null where an operand or the result is no number.
PythonRef python_arithmetic(const PythonRef& left, const PythonRef& right, const PythonToken& mark);

}  // namespace stagecraft
