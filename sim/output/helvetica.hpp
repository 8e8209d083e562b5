#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// Text in the encoding of PDF's standard fonts, WinAnsiEncoding.
struct WindowsText {
  std::string bytes;
  int replaced = 0;  ///< Characters that the encoding lacks, each of which became "?".
};
WindowsText windows_1252(std::string_view utf8);
/// The character of a byte of that encoding; 0 where it has none that pictures use.
char32_t windows_1252_character(unsigned char byte);

/// The width of a character of WinAnsiEncoding in Helvetica or Helvetica-Bold, in thousandths of its size. Source: the
/// Adobe Font Metrics of the standard fonts.
int helvetica_width(unsigned char byte, bool bold);

}  // namespace stagecraft
