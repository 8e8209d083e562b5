#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace stagecraft {

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

}  // namespace stagecraft
