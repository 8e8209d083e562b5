// Lines and columns of a text that is parsed, as people count them, for messages; also finds bytes that are no text.

#include "sim/config/source.hpp"

#include <algorithm>
#include <iterator>

namespace stagecraft::config {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the UTF-8 character that starts with `c`; 0 when none does.
std::size_t length_of_character(unsigned char c) {
  if (c < 0x80) return 1;
  if (c < 0xC2 || c > 0xF4) return 0;
  return c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

}  // namespace

SourceText::SourceText(std::string_view text, const std::string& file) : text_(text), file_(file), starts_{0} {
  for (std::size_t at = text.find('\n'); at != kNowhere; at = text.find('\n', at + 1)) starts_.push_back(at + 1);
}

std::size_t SourceText::offset(int line, int column) const {
  if (line < 0 || column < 0 || line >= std::ssize(starts_)) return text_.size();
  return std::min(starts_[line] + column, text_.size());
}

std::size_t SourceText::line_start(std::size_t offset) const {
  return *std::prev(std::upper_bound(starts_.begin(), starts_.end(), offset));
}

Where SourceText::where(std::size_t offset) const {
  const auto line = std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin();
  const std::size_t start = line_start(offset);
  if (start != last_line_) last_line_ = last_offset_ = start, last_column_ = 1;
  for (; last_offset_ < std::min(offset, text_.size()); ++last_offset_)
    if (!continues_character(text_[last_offset_])) ++last_column_;
  while (last_offset_ > offset)
    if (!continues_character(text_[--last_offset_])) --last_column_;
  return {file_, static_cast<int>(line), last_column_};
}

std::size_t SourceText::first_word(std::size_t offset) const {
  std::size_t at = line_start(offset);
  while (this->at(at) == ' ' || this->at(at) == '\t') ++at;
  return at;
}

std::size_t SourceText::tab_before(std::size_t offset) const {
  const std::size_t start = line_start(offset);
  if (start != last_start_) {
    last_start_ = start;
    last_indent_ = text_.find_first_not_of(" \t", start);
    last_tab_ = text_.substr(0, last_indent_).find('\t', start);
  }
  return offset <= last_indent_ && last_tab_ < offset ? last_tab_ : kNowhere;
}

bool SourceText::quote_is_closed(std::size_t offset) const {
  const char quote = at(offset);
  for (std::size_t i = offset + 1; i < text_.size(); ++i) {
    const bool doubled = quote == '\'' && text_[i] == quote && at(i + 1) == quote;
    if (doubled || (quote == '"' && text_[i] == '\\')) {
      ++i;
    } else if (text_[i] == quote) {
      return true;
    }
  }
  return false;
}

std::size_t first_odd_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    const std::size_t length = length_of_character(c);
    if (control || length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k)
      if (!continues_character(text[i + k])) return i;
    i += length;
  }
  return kNowhere;
}

}  // namespace stagecraft::config
