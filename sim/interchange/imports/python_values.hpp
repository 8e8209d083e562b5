#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace stagecraft {

/// What a Python expression gives, as far as it is written out: a number, a text, a truth value, None or a list; or the
/// object that a call makes.
struct PythonValue {
  Json plain;                                        ///< Null for objects, for None and for what is computed.
  bool is_computed = false;                          ///< Only running the file tells.
  bool is_attribute = false;                         ///< Computed: of an object, which the file did not assign.
  std::string callee;                                ///< "Trainer.Config" of an object; empty for other values.
  std::vector<std::shared_ptr<PythonValue>> values;  ///< Elements of a list, and arguments without a name.
  std::map<std::string, std::shared_ptr<PythonValue>> fields;  ///< Arguments with a name, and assigned attributes.
  int line = 0, column = 0;
};

struct PythonFile {
  std::shared_ptr<PythonValue> returned;       ///< By the function that was asked for.
  std::map<std::string, std::string> imports;  ///< Modules by the names that are imported from them.
};

/// Functions at the top of a file, in their order, without those whose names begin with "_".
std::vector<std::string> python_functions(const std::string& text, const std::string& file);

/// What a function of a file returns. Nothing runs: assignments, literals, arithmetic of numbers, and calls of the
/// file's own functions are followed. InputError with its place for what decides the value and is not one of these.
PythonFile read_python(const std::string& text, const std::string& file, const std::string& function);

}  // namespace stagecraft
