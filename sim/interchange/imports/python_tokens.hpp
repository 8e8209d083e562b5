#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

struct PythonToken {
  enum class Kind { Name, Number, String, Mark } kind;
  std::string text;
  int line, column;

  bool is(std::string_view mark) const { return kind != Kind::String && text == mark; }
};

/// A statement, with brackets closed and comments taken out.
struct PythonLine {
  int indent = 0;
  std::vector<PythonToken> tokens;
};

/// Throws an InputError about a place of a Python file.
[[noreturn]] void refuse_python(const std::string& file, int line, int column, std::string message, std::string help);

/// The statements of a Python file. InputError with its place for what is no Python.
std::vector<PythonLine> python_lines(const std::string& text, const std::string& file);

/// The last "=", also of "+=", that no bracket encloses; the number of tokens where there is none.
std::size_t last_assignment(const std::vector<PythonToken>&);
/// Tokens before the "=" of an assignment to a name or an attribute; 0 for other statements.
std::size_t assignment_target(const std::vector<PythonToken>&);

}  // namespace stagecraft
