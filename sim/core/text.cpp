// Operations on text that all folders use: suggestions for misspelt words, joining and splitting, printable characters,
// escapes for XML and CSV, and numbers as text.

#include "sim/core/text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "sim/core/from_chars.hpp"

namespace stagecraft {
namespace {

// Optimal string alignment: insert, delete, replace and swap of neighbors count one each. O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// Letters that are the same from the beginning on, and from the end.
std::ptrdiff_t alike_at_ends(std::string_view a, std::string_view b) {
  return (std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin()) +
         (std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

/// One character at the front of a text, or one byte that begins none.
struct Character {
  char32_t code;
  std::size_t length;
  bool valid;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const Character invalid{first, 1, false};
  if (first < 0x80) return {first, 1, true};
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size()) return invalid;
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return invalid;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800,
                                    0x10000};  // By length: shorter forms of a character are invalid.
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[length] || surrogate || code > 0x10FFFF) return invalid;
  return {code, length, true};
}

/// Control characters, line separators, zero-width and bidirectional format characters, noncharacters and tags.
bool is_printable(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range kUnprintable[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},    {0x200B, 0x200B},
                                    {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},  {0xFEFF, 0xFEFF},
                                    {0xFFF9, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF}};
  return std::none_of(std::begin(kUnprintable), std::end(kUnprintable),
                      [&](const Range& range) { return c >= range.first && c <= range.last; });
}

std::string escape_of(const Character& c) {
  if (!c.valid) return fmt::format("\\x{:02x}", static_cast<unsigned>(c.code));
  if (c.code == U'\n') return "\\n";
  if (c.code == U'\t') return "\\t";
  const auto code = static_cast<unsigned>(c.code);
  return code > 0xFFFF ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
}

/// The text with `replacement(character)` in place of what is not printable, except the characters of `unchanged`.
template <class Replacement>
std::string replaced(std::string_view text, std::string_view unchanged, const Replacement& replacement) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const auto special = std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
    const std::size_t plain = special - text.begin();
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const Character c = first_character(text);
    const bool stays =
        c.valid && (is_printable(c.code) || (c.length == 1 && unchanged.find(text[0]) != unchanged.npos));
    if (stays)
      out += text.substr(0, c.length);
    else
      out += replacement(c);
    text.remove_prefix(c.length);
  }
}

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

std::string_view replacement_character(const Character&) { return kReplacementCharacter; }

/// Whether a spreadsheet would compute something from the text.
bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@").find(text.front()) == std::string_view::npos) return false;
  double number = 0;
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), number);
  return error != std::errc{} || end != text.data() + text.size();
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  const auto same = [&](const std::string& c) { return lower_case(word) == lower_case(c); };
  if (std::count_if(candidates.begin(), candidates.end(), same) == 1)  // Units may differ in case alone.
    return *std::find_if(candidates.begin(), candidates.end(), same);
  std::optional<std::string> best;
  std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  for (const std::string& candidate : candidates) {
    const std::size_t apart = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (apart > limit) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > limit) continue;
    if (best && distance == limit && alike_at_ends(word, candidate) <= alike_at_ends(word, *best)) continue;
    best = candidate;
    limit = distance;
  }
  return best;
}

namespace {

/// "zb" of "zero-bubble"; empty for a word without hyphens.
std::string initials_of(std::string_view word) {
  const std::vector<std::string> parts = split(word, '-');
  std::string letters;
  for (const std::string& part : parts) letters += part.substr(0, 1);
  return parts.size() > 1 ? letters : std::string();
}

/// A few candidates that hold the word, or whose last part begins with the same letters as it or with its initials.
std::vector<std::string> related(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kFewest = 3, kMost = 12;  // Letters that say something; names in a message.
  const std::string asked = lower_case(word);
  const auto letters = [](const std::string& text) {
    return text.substr(0, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  };
  std::vector<std::string> holding, alike;
  for (const std::string& candidate : candidates) {
    const std::string name = lower_case(candidate), last = name.substr(name.rfind('/') + 1);
    if (asked.size() >= kFewest && name.find(asked) != std::string::npos) holding.push_back(candidate);
    if (letters(asked).size() >= kFewest && letters(asked) == letters(last)) alike.push_back(candidate);
    if (letters(last).size() > 1 && letters(last) == initials_of(asked)) alike.push_back(candidate);
  }
  std::vector<std::string>& names = holding.empty() ? alike : holding;
  if (names.size() > kMost) names.clear();
  return std::move(names);
}

/// The candidate that others call by another word, of which no letters agree.
std::optional<std::string> other_word(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {{"gpu", "cuda"}, {"nvidia", "cuda"}};
  for (const auto& [other, ours] : kOtherWords)
    if (lower_case(word) == other && std::find(candidates.begin(), candidates.end(), ours) != candidates.end())
      return std::string(ours);
  return {};
}

/// Kinds of what `word` names: h100-sxm and h100-pcie for h100.
std::vector<std::string> kinds_of(std::string_view word, std::span<const std::string> candidates) {
  std::vector<std::string> kinds;
  for (const std::string& candidate : candidates)
    if (candidate.starts_with(lower_case(word) + "-")) kinds.push_back(candidate);
  return kinds;
}

}  // namespace

std::string suggest(std::string_view word, std::span<const std::string> candidates) {
  if (const auto meant = other_word(word, candidates)) return fmt::format("did you mean '{}'?", *meant);
  if (const auto kinds = kinds_of(word, candidates); kinds.size() > 1 && kinds.size() <= 12)
    return fmt::format("did you mean one of '{}'?", join(kinds, "', '"));
  if (const auto near = closest(word, candidates)) return fmt::format("did you mean '{}'?", *near);
  if (const auto names = related(word, candidates); !names.empty())
    return fmt::format("did you mean {}'{}'?", names.size() == 1 ? "" : "one of ", join(names, "', '"));
  if (candidates.empty() || candidates.size() > 15) return {};
  if (candidates.size() == 1) return fmt::format("write {}", candidates.front());
  return "write one of " + join(candidates);
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != words.data()) text += separator;
    text += word;
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string printable(std::string_view text) { return replaced(text, {}, escape_of); }

std::string printable_lines(std::string_view text) { return replaced(text, "\n\t", escape_of); }

std::string replace_unprintable(std::string_view text) { return replaced(text, "\n\t", replacement_character); }

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : replace_unprintable(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string spreadsheet_text(std::string_view text) { return (is_formula(text) ? "'" : "") + printable(text); }

std::string csv_cell(std::string_view text, bool quoted) {
  const std::string cell = spreadsheet_text(text);
  if (!quoted && cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string out;
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return '"' + out + '"';
}

std::string pluralize(std::int64_t count, std::string_view what, std::string_view ending) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  for (std::size_t at = star; at <= name.size(); ++at)
    if (matches(pattern.substr(star + 1), name.substr(at))) return true;
  return false;
}

std::string percent(double share) { return fmt::format("{:.1f} %", std::abs(share) < 5e-4 ? 0.0 : 100 * share); }

std::string short_number(double value) {
  constexpr double kThousand = 1000, kFirst = 10 * kThousand;
  std::size_t letter = 0;
  const std::string_view letters = " kMGT";
  if (value >= kFirst)
    while (value >= kThousand && letter + 1 < letters.size()) value /= kThousand, ++letter;
  return letter == 0 ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, letters[letter]);
}

std::string shortest(double value) { return fmt::format("{}", value); }

std::optional<int> read_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t digits = end - text.data();
  if (error != std::errc{} || text.front() == '-' || (digits > 1 && text.front() == '0')) return {};
  text.remove_prefix(digits);
  return value;
}

std::string two_digits(double value) {
  return std::abs(value) < 99.5 ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

}  // namespace stagecraft
