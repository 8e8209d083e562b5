// Reads and writes ranges of devices such as "node[0-1].gpu[0-3]".

#include "sim/plan/device_ranges.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "sim/core/from_chars.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr int kMostDevices = 1'000'000;
constexpr std::size_t kFewestInRange = 3;

/// A whole number as names write it: without leading zeros, and not too long to count with.
bool parse_index(std::string_view text, int& number) {
  if (text.empty() || text.size() > 7 || (text.size() > 1 && text.front() == '0')) return false;
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// What two names have in common around the only number in which they differ.
struct CommonName {
  std::string_view before, after;
  int first = 0, second = 0;
};

bool is_digit(char c) { return kDigits.find(c) != std::string_view::npos; }

std::optional<CommonName> common_name(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t before = 0, after = 0;
  while (before < shorter && a[before] == b[before]) ++before;
  while (before > 0 && is_digit(a[before - 1])) --before;
  while (after < shorter - before && a[a.size() - 1 - after] == b[b.size() - 1 - after]) ++after;
  while (after > 0 && is_digit(a[a.size() - after])) --after;
  CommonName name{a.substr(0, before), a.substr(a.size() - after)};
  if (!parse_index(a.substr(before, a.size() - after - before), name.first) ||
      !parse_index(b.substr(before, b.size() - after - before), name.second))
    return {};
  return name;
}

/// Writes three and more texts in a row that count a number up or down as one range. What they have after the number is
/// equal, so a range there is that of each of them.
std::vector<std::string> with_ranges(const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < texts.size();) {
    std::size_t count = 1;
    std::optional<CommonName> range;
    if (i + 1 < texts.size()) range = common_name(texts[i], texts[i + 1]);
    if (range && range->before.find('[') != std::string_view::npos) range.reset();
    const int step = range ? range->second - range->first : 0;
    int last = range ? range->first : 0;
    while (std::abs(step) == 1 && i + count < texts.size() &&
           texts[i + count] == fmt::format("{}{}{}", range->before, last + step, range->after))
      ++count, last += step;
    if (count >= kFewestInRange)
      result.push_back(fmt::format("{}[{}-{}]{}", range->before, range->first, last, range->after));
    else
      result.push_back(texts[i]), count = 1;
    i += count;
  }
  return result;
}

}  // namespace

std::vector<std::string> expand_device_range(std::string_view text) {
  constexpr int kMaxRanges = 16;
  if (std::count(text.begin(), text.end(), '[') > kMaxRanges) return {std::string(text)};
  const std::size_t open = text.find('['), close = text.find(']', open), dash = text.find('-', open);
  int first = 0, last = 0;
  if (open == std::string_view::npos || close == std::string_view::npos || dash == std::string_view::npos ||
      dash > close || !parse_index(text.substr(open + 1, dash - open - 1), first) ||
      !parse_index(text.substr(dash + 1, close - dash - 1), last))
    return {std::string(text)};
  const std::vector<std::string> endings = expand_device_range(text.substr(close + 1));
  if (std::abs(last - first) >= kMostDevices / std::ssize(endings)) return {std::string(text)};
  std::vector<std::string> names;
  for (int i = first, step = first <= last ? 1 : -1; i != last + step; i += step)
    for (const std::string& ending : endings) names.push_back(fmt::format("{}{}{}", text.substr(0, open), i, ending));
  return names;
}

std::vector<std::string> device_ranges(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  std::vector<std::string> shorter, names;
  for (const DeviceId d : devices) shorter.push_back(cluster.devices[d].name);
  do {
    names = std::move(shorter);
    shorter = with_ranges(names);
  } while (shorter.size() < names.size());
  return names;
}

}  // namespace stagecraft
