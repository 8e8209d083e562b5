// Fits text to the terminal: the width as it is displayed, lines wrapped under their column, shortened words, and
// color.

#include "sim/output/text_layout.hpp"

#include <algorithm>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kEllipsis = "…";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Bytes of a terminal sequence at the front; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  for (const std::string_view sequence : {text_color::kBold, text_color::kDim, text_color::kRed, text_color::kReset})
    if (text.starts_with(sequence)) return sequence.size();
  return 0;
}

/// Whether a line may not break between these words: a number stays with its unit.
bool belongs_to(std::string_view word, std::string_view before) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !before.empty() && is_digit(before.back()) && !is_digit(word.front());
}

/// The character at which a continued line begins.
std::size_t hanging_indent(std::string_view line, std::size_t width) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  std::size_t column = first + 2;
  for (std::size_t gap = line.find("  ", first); gap != std::string_view::npos;) {
    const std::size_t next = line.find_first_not_of(' ', gap);
    if (next == std::string_view::npos || display_width(line.substr(0, next)) > width / 2) break;
    column = display_width(line.substr(0, next));
    gap = line.find("  ", next);
  }
  return std::min(column, width / 2);
}

}  // namespace

std::string colored(const TextLayout& layout, std::string_view sequence, std::string text) {
  if (!layout.color || text.empty()) return text;
  return std::string(sequence) + text + std::string(text_color::kReset);
}

std::size_t display_width(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t sequence = sequence_length(text);
    if (sequence == 0 && !continues_character(text.front())) ++count;
    text.remove_prefix(std::max<std::size_t>(sequence, 1));
  }
  return count;
}

std::string wrap_line(std::string_view line, std::size_t width, std::size_t indent) {
  if (width == 0 || display_width(line) <= width) return std::string(line);
  std::string text;
  std::size_t used = 0;
  bool line_has_word = false;
  while (!line.empty()) {
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find(' ', spaces), line.size());
    std::string_view word = line.substr(spaces, end - spaces);
    if (word.empty()) break;  // Spaces at the end of the line.
    if (const std::string_view next = line.substr(std::min(end + 1, line.size())); !next.empty() && next.front() != ' ')
      if (const std::string_view unit = next.substr(0, next.find(' ')); belongs_to(unit, word))
        word = line.substr(spaces, end + 1 + unit.size() - spaces);
    line.remove_prefix(spaces + word.size());
    if (line_has_word && used + spaces + display_width(word) > width) {
      text += '\n' + std::string(indent, ' ');
      used = indent;
    } else {
      text += std::string(spaces, ' ');
      used += spaces;
    }
    text += word;
    used += display_width(word);
    line_has_word = true;
  }
  return text;
}

std::string wrap_lines(std::string_view text, int width) {
  if (width <= 0) return std::string(text);
  const std::size_t limit = width;
  std::string wrapped;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    wrapped += wrap_line(line, limit, hanging_indent(line, limit));
    if (end < text.size()) wrapped += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapped;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t bytes = 0;
  for (std::size_t shown = 0; bytes < text.size(); ++bytes)
    if (!continues_character(text[bytes]) && ++shown == width) break;
  return std::string(text.substr(0, bytes)) + std::string(kEllipsis);
}

}  // namespace stagecraft
