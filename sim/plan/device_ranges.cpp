#include "sim/plan/device_ranges.hpp"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr int kMostDevices = 1'000'000;
constexpr std::size_t kFewestInRange = 3;

/// A whole number as names write it: without leading zeros, and not too long to count with.
bool parse_index(std::string_view text, int& number) {
  if (text.empty() || text.size() > 7 || (text.size() > 1 && text.front() == '0')) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// A name around its last number.
struct NumberedName {
  std::string_view before, after;
  int number = -1;  ///< -1: none.
};

NumberedName numbered(std::string_view name) {
  const std::size_t last = name.find_last_of(kDigits);
  if (last == std::string_view::npos) return {};
  const std::size_t before = name.substr(0, last + 1).find_last_not_of(kDigits);
  const std::size_t first = before == std::string_view::npos ? 0 : before + 1;
  NumberedName result{name.substr(0, first), name.substr(last + 1)};
  if (!parse_index(name.substr(first, last + 1 - first), result.number)) return {};
  return result;
}

}  // namespace

std::vector<std::string> expand_device_range(std::string_view text) {
  const std::size_t open = text.find('['), close = text.find(']', open), dash = text.find('-', open);
  int first = 0, last = 0;
  if (open == std::string_view::npos || close == std::string_view::npos || dash == std::string_view::npos ||
      dash > close || !parse_index(text.substr(open + 1, dash - open - 1), first) ||
      !parse_index(text.substr(dash + 1, close - dash - 1), last) || std::abs(last - first) >= kMostDevices)
    return {std::string(text)};
  std::vector<std::string> names;
  for (int i = first, step = first <= last ? 1 : -1; i != last + step; i += step)
    names.push_back(fmt::format("{}{}{}", text.substr(0, open), i, text.substr(close + 1)));
  return names;
}

std::vector<std::string> device_ranges(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < devices.size();) {
    const NumberedName first = numbered(cluster.devices[devices[i]].name);
    std::size_t count = 1;
    int step = 0;
    while (first.number >= 0 && i + count < devices.size()) {
      const NumberedName next = numbered(cluster.devices[devices[i + count]].name);
      const int distance = next.number - first.number, each = distance / static_cast<int>(count);
      if (next.number < 0 || next.before != first.before || next.after != first.after) break;
      if (count == 1 && std::abs(distance) == 1) step = distance;
      if (step == 0 || each != step || distance != step * static_cast<int>(count)) break;
      ++count;
    }
    if (count >= kFewestInRange)
      result.push_back(fmt::format("{}[{}-{}]{}", first.before, first.number,
                                   first.number + step * (static_cast<int>(count) - 1), first.after));
    else
      result.push_back(cluster.devices[devices[i]].name), count = 1;
    i += count;
  }
  return result;
}

}  // namespace stagecraft
