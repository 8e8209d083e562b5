#pragma once

#include <map>
#include <string>

#include "sim/interchange/imports/python_literals.hpp"

namespace stagecraft {

using PythonNames = std::map<std::string, PythonRef>;

/// What has the name in a function, else in the file; null where nothing has it.
PythonRef find_name(const std::string& name, const PythonNames& names, const PythonNames& globals);

/// Reads one expression from the tokens of a line.
struct PythonCursor {
  const std::vector<PythonToken>& tokens;
  std::size_t at;
  PythonNames& names;
  const PythonNames& globals;
  int depth = 0;

  bool is(std::string_view mark) const { return at < tokens.size() && tokens[at].is(mark); }
  bool take(std::string_view mark) { return is(mark) && ++at; }
  PythonRef find(const std::string& name) const { return find_name(name, names, globals); }
};

// Only running a file tells what an object is after a function that is not in it got the object. Such a file is
// refused.

bool has_attributes(const PythonValue&);
/// Whether a function that is not in the file leaves its arguments as they are: classes take them as parts, and some
/// functions of Python and torchtitan read them.
bool changes_nothing(const std::string& function);

[[noreturn]] void refuse_change(const std::string& file, const PythonToken& at, const std::string& what);
/// An object of the file that tokens from here to the cursor name may be changed by what is not followed.
void refuse_objects(const std::string& file, const PythonCursor&, std::size_t from);
/// An argument of such a function that begins at a token: an object with a name, or a section of one.
void check_argument(const std::string& file, const std::string& function, const PythonCursor&, std::size_t begin,
                    const PythonValue&);

}  // namespace stagecraft
