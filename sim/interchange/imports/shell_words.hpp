#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// A word of a shell script and its line.
struct ShellWord {
  std::string text;
  int line = 0;
};

/// What a shell runs: the words of a command, or of an array that no command uses.
using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, std::string> values;  ///< Variables that the script sets; empty for those that it unsets.
  /// Values of variables and arrays that a branch replaces and the script uses then; the last one counts.
  std::map<std::string, std::vector<std::string>> of_branches;
  std::set<std::string>
      taken_as_empty;  ///< Variables that the script does not set, and whose emptiness chose a branch.
};

/// Reads a shell script without running it: drops comments, quotes and redirections, joins continued lines, and puts
/// the values of variables and arrays in their places where the script sets them before, or gives a default as in
/// ${NAME:-8}. $((...)) is computed. What has no known value stays as it is written. A branch whose
/// condition the script itself decides is taken or not; every other branch of `if` and `case` counts as taken. A
/// variable that the script does not set is taken as empty by a condition that asks just that, as [ -z $1 ]. Lines that
/// begin with an option are a list of arguments, in which line breaks and parentheses mean nothing. InputError where
/// values that contain each other become too long.
ShellScript read_shell(std::string_view script);

/// Sentences about what the script leaves open and is chosen here: values of branches, and variables taken as empty.
std::vector<std::string> shell_notes(const ShellScript&);

}  // namespace stagecraft
