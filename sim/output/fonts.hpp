#pragma once

#include <array>
#include <map>
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

/// What a PDF file says of a font besides its outlines, in thousandths of the size.
struct FontMetrics {
  std::array<int, 4> box{};  ///< Left, bottom, right and top of all glyphs.
  int ascent = 0, descent = 0, cap_height = 0;
  std::map<char32_t, int> widths;  ///< Widths of the characters in the subset.
};

/// A TrueType font (Apple, TrueType Reference Manual) with the outlines of some characters, without hints.
struct FontSubset {
  std::string bytes;
  FontMetrics metrics;
};

/// Cuts characters out of a font file; those that it lacks get its empty glyph. InputError where it is no TrueType
/// font.
FontSubset font_subset(std::string_view font_file, std::u32string_view characters);

/// A font that the build found, with the outlines of the characters of Windows-1252 alone.
struct EmbeddedFont {
  std::string_view name;   ///< "DejaVuSansCondensed"; empty where the build found none.
  std::string_view bytes;  ///< A TrueType file.
};

/// The font of the text in PDF files. The build writes it, from a font whose license permits that.
EmbeddedFont embedded_font(bool bold);

}  // namespace stagecraft
