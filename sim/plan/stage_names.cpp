// Names the stages that a problem is about in one phrase, such as "each of the stages s0..s7", so that equal problems
// of many stages are one message.

#include "sim/plan/stage_names.hpp"

#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// "s" and 12 of "s12"; nothing for a name without a number at its end.
struct NumberedName {
  std::string_view prefix;
  int number;
};

std::optional<NumberedName> numbered(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::string_view end = name.substr(digits);
  const std::optional<int> number = read_number(end);
  if (!number || !end.empty()) return {};
  return NumberedName{name.substr(0, digits), *number};
}

bool follows(std::string_view name, std::string_view before) {
  const auto a = numbered(before), b = numbered(name);
  return a && b && a->prefix == b->prefix && b->number == a->number + 1;
}

}  // namespace

std::string stages_text(const std::vector<std::string>& names) {
  if (names.size() == 1) return fmt::format("stage '{}'", names.front());
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < names.size();) {
    std::size_t last = first;
    while (last + 1 < names.size() && follows(names[last + 1], names[last])) ++last;
    if (last > first + 1) {
      ranges.push_back(names[first] + ".." + names[last]);
    } else {
      ranges.insert(ranges.end(), names.begin() + static_cast<std::ptrdiff_t>(first),
                    names.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    }
    first = last + 1;
  }
  return "each of the stages " + join(ranges);
}

}  // namespace stagecraft
