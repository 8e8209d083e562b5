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
/// unknown value stays as it is written.
std::vector<ShellWord> shell_words(std::string_view script);

}  // namespace stagecraft
