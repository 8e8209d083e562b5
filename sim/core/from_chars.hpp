#pragma once

#include <charconv>

namespace stagecraft {

/// What std::from_chars does for a double, by strtod.
std::from_chars_result double_from_chars(const char* first, const char* last, double& value);

/// std::from_chars, for doubles too where the standard library lacks that: libc++ before version 20.
using std::from_chars;
#ifndef __cpp_lib_to_chars
inline std::from_chars_result from_chars(const char* first, const char* last, double& value) {
  return double_from_chars(first, last, value);
}
#endif

}  // namespace stagecraft
