#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::config {

/// A text cut into lines: yaml-cpp counts bytes from 0, people count characters from 1.
class SourceText {
 public:
  SourceText(std::string_view text, const std::string& file);

  /// Byte offset of a line and a column, both counted from 0, the column in bytes; the end when the place is outside.
  std::size_t offset(int line, int column) const;
  Where where(std::size_t offset) const;
  char at(std::size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  std::string_view from(std::size_t offset) const {
    return text_.substr(offset < text_.size() ? offset : text_.size());
  }
  std::size_t first_word(std::size_t offset) const;  ///< Where the indentation of the line of `offset` ends.
  std::size_t tab_before(std::size_t offset) const;  ///< The first tab in the space before `offset`, or npos.
  bool quote_is_closed(std::size_t offset) const;    ///< Whether the quote that stands at `offset` has an end.

 private:
  std::size_t line_start(std::size_t offset) const;

  std::string_view text_;
  const std::string& file_;
  std::vector<std::size_t> starts_;
  mutable std::size_t last_line_ = 0;    ///< Start of the line of the last answer.
  mutable std::size_t last_offset_ = 0;  ///< Offset of the last answer, so that one long line is counted once.
  mutable int last_column_ = 1;
  mutable std::size_t last_start_ = std::string_view::npos;  ///< Start of the line that tab_before() looked at last.
  mutable std::size_t last_indent_ = 0;                      ///< End of the indentation of that line.
  mutable std::size_t last_tab_ = std::string_view::npos;    ///< First tab in that indentation.
};

/// The offset of the first byte that is neither UTF-8 nor a character of a text, or npos.
std::size_t first_odd_byte(std::string_view text);

}  // namespace stagecraft::config
