#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// How text for people is laid out: what fits on a terminal, and what the user chose.
struct TextLayout {
  int width = 0;                          ///< Characters of the longest line; 0: lines are as long as they need to be.
  std::vector<std::string> columns = {};  ///< Columns of a table that the user chose, in this order; empty: all.
  bool color = false;                     ///< Whether tables have the sequences of `text_color`.
};

/// The only terminal sequences that tables contain.
namespace text_color {
inline constexpr std::string_view kBold = "\033[1m", kDim = "\033[2m", kRed = "\033[31m", kReset = "\033[0m";
}

/// The text between two sequences, if `layout` has color and the text is not empty.
std::string colored(const TextLayout& layout, std::string_view sequence, std::string text);

/// Characters that a terminal shows: code points of UTF-8, without the sequences of `text_color`.
std::size_t display_width(std::string_view text);

/// The text with every line of more than `width` characters broken at spaces. A continued line begins where the last
/// column of its first line begins, or two characters after the indentation. A longer word stays whole. Width 0 changes
/// nothing.
std::string wrap_lines(std::string_view text, int width);
/// One line, without a line break at its end, continued at `indent`.
std::string wrap_line(std::string_view line, std::size_t width, std::size_t indent);

/// At most `width` characters, the last of which is an ellipsis where text is missing.
std::string shorten(std::string_view text, std::size_t width);

}  // namespace stagecraft
