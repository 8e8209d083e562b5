#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The closest of `candidates` to `word` within max(1, length/3) edits (swaps count one), or nothing.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'?", or the allowed words when there are at most fifteen, or nothing.
std::string suggest(std::string_view word, std::span<const std::string> candidates);

std::string join(std::span<const std::string> words, std::string_view separator = ", ");
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
/// With the capital letters of ASCII as small ones.
std::string lower_case(std::string_view text);

/// Text that a terminal shows as it is: control characters, line breaks, invisible characters, characters that reverse
/// the direction of writing and bytes that are not UTF-8 become escapes such as \n, \u001b or \xff.
std::string printable(std::string_view text);
/// printable() for a whole output: its line breaks and tabs stay.
std::string printable_lines(std::string_view text);
/// Text of as many characters, in which U+FFFD stands for each one that printable() escapes, except line breaks and
/// tabs.
std::string replace_unprintable(std::string_view text);

/// Text for XML, SVG and HTML, inside an element as well as inside an attribute in double quotes. U+FFFD stands for
/// characters that printable() escapes, most of which XML forbids; line breaks and tabs stay.
std::string xml_escape(std::string_view text);
/// Printable text that a spreadsheet does not take for a formula: with an apostrophe before it where it would be one.
/// Numbers stay as they are.
std::string spreadsheet_text(std::string_view text);
/// spreadsheet_text() as a cell of a CSV file, in double quotes where it has a comma or a quote, or where `quoted` asks
/// for them.
std::string csv_cell(std::string_view text, bool quoted = false);

/// "1 device", "2 devices", "3 micro-batches".
std::string pluralize(std::int64_t count, std::string_view what, std::string_view ending = "s");

/// Whether `name` is `pattern`, in which * stands for any letters, also none.
bool matches(std::string_view pattern, std::string_view name);

/// Takes a whole number without sign or leading zeros off the front; nothing, and the text as it was, where there is
/// none.
std::optional<int> read_number(std::string_view& text);

/// "12.3 %"; rounding never makes it -0.0 %.
std::string percent(double share);

/// Four digits, and from ten thousand on a letter for each thousand: "70.37 k".
std::string short_number(double);

/// A double with the fewest digits that read back the same.
std::string shortest(double value);

/// Two digits, more from 99.5 on and never an exponent there: `0.31`, `4.2`, `37`, `250`.
std::string two_digits(double value);

}  // namespace stagecraft
