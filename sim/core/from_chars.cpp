// Reads a double as std::from_chars does: without white space, '+' and hexadecimal digits, whatever follows it.

#include "sim/core/from_chars.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char* after_digits(const char* at, const char* last) { return std::find_if_not(at, last, is_digit); }

/// The end of the decimal number that begins at `first`, after its sign; `first` where there is none.
const char* end_of_number(const char* first, const char* last) {
  const char* end = after_digits(first, last);
  auto digits = end - first;
  if (end != last && *end == '.') {
    const char* const fraction = end + 1;
    end = after_digits(fraction, last);
    digits += end - fraction;
  }
  if (digits == 0) return first;
  if (end == last || (*end != 'e' && *end != 'E')) return end;
  const char* exponent = end + 1;
  if (exponent != last && (*exponent == '-' || *exponent == '+')) ++exponent;
  const char* const stop = after_digits(exponent, last);
  return stop == exponent ? end : stop;
}

/// Reads "inf", "infinity" or "nan" in any case, after a sign.
std::from_chars_result read_word(const char* first, const char* word, const char* last, double& value) {
  std::string letters(word, std::min(last, word + std::min<std::ptrdiff_t>(last - word, 8)));
  for (char& c : letters) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view name : {"infinity", "inf", "nan"}) {
    if (!letters.starts_with(name)) continue;
    const double read = name == "nan" ? std::nan("") : kInfinity;
    value = first == word ? read : -read;
    return {word + name.size(), std::errc()};
  }
  return {first, std::errc::invalid_argument};
}

}  // namespace

std::from_chars_result double_from_chars(const char* first, const char* last, double& value) {
  const char* const digits = first != last && *first == '-' ? first + 1 : first;
  const char* const end = end_of_number(digits, last);
  if (end == digits) return read_word(first, digits, last, value);
  const std::string text(first, end);
  errno = 0;
  const double number = std::strtod(text.c_str(), nullptr);
  if (errno == ERANGE && (std::isinf(number) || number == 0)) return {end, std::errc::result_out_of_range};
  value = number;
  return {end, std::errc()};
}

}  // namespace stagecraft
