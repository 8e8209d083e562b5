#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The closest of `candidates` to `word` within max(1, length/3) edits (swaps count one), or nothing.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'?", or the allowed words when there are at most twelve, or nothing.
std::string suggest(std::string_view word, std::span<const std::string> candidates);

std::string join(std::span<const std::string> words, std::string_view separator = ", ");
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
/// In quotes, as a cell of a CSV file.
std::string csv_quoted(std::string_view text);

/// The whole of a file; throws InputError when it cannot be read.
std::string read_file(const std::string& path);
/// Writes to a neighbour file and renames it, so that a reader never sees half of it.
void write_file(const std::string& path, std::string_view content);

/// Takes a whole number without sign or leading zeros off the front; nothing, and the text as it was, where there is
/// none.
std::optional<int> read_number(std::string_view& text);

/// A double with the fewest digits that read back the same.
std::string shortest(double value);

/// Two digits, more from 99.5 on and never an exponent there: `0.31`, `4.2`, `37`, `250`.
std::string two_digits(double value);

}  // namespace stagecraft
