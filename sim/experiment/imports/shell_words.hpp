#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// A word of a shell script and its line.
struct ShellWord {
  std::string text;
  int line = 0;
};

/// The words of a shell script: without comments, quotes and the parentheses of arrays, with continued lines joined,
/// and with variables replaced where the script sets them before, or gives a default as in ${NAME:-8}. A variable of
/// unknown value stays as it is written. InputError where the values add more than a megabyte, or there are more than
/// 65,536 words and variables.
std::vector<ShellWord> shell_words(std::string_view script, const std::string& file);

}  // namespace stagecraft
