#include "sim/core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

// Optimal string alignment: insert, delete, replace and swap of neighbours count one each. O(|a| |b|).
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

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace

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

std::string suggest(std::string_view word, std::span<const std::string> candidates) {
  if (const auto near = closest(word, candidates)) return fmt::format("did you mean '{}'?", *near);
  if (candidates.empty() || candidates.size() > 12) return {};
  if (candidates.size() == 1) return fmt::format("write {}", candidates.front());
  return "write one of " + join(candidates);
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
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

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) switch (c) {
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

std::string csv_cell(std::string_view text, bool quoted) {
  if (!quoted && text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string out;
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
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

std::string shortest(double value) { return fmt::format("{}", value); }

std::optional<int> read_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || text.front() == '-' || (digits > 1 && text.front() == '0')) return {};
  text.remove_prefix(digits);
  return value;
}

std::string two_digits(double value) {
  return std::abs(value) < 99.5 ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

}  // namespace stagecraft
