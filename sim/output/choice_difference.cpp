// The field `behind` of `search` in JSON and on its page: why a row comes after the first (work, waiting, contention),
// and what it needs less.

#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/choice_table.hpp"

namespace stagecraft {
namespace {

/// Below this share of the first row's period, or of its memory, a difference is not worth a word.
constexpr double kSmallDifference = 1e-3;

/// "0.4 ms more work on the busiest device": nothing where the difference is small.
void add_time(std::vector<std::string>& parts, Seconds difference, Seconds period, const char* what) {
  if (std::abs(difference.value) < kSmallDifference * period.value) return;
  parts.push_back(fmt::format("{} {} {}", to_text(Seconds{std::abs(difference.value)}),
                              difference.value > 0 ? "more" : "less", what));
}

Seconds waiting_of(const Choice& c) { return std::max(Seconds{0}, c.period - c.work); }

/// What the choice needs less than the first: the reason why it is on the front.
std::string saved_text(const Choice& c, const Choice& first) {
  std::vector<std::string> parts;
  if (c.memory.value < first.memory.value * (1 - kSmallDifference))
    parts.push_back(to_text(Bytes{first.memory.value - c.memory.value}) + " less memory");
  if (c.devices < first.devices) parts.push_back(pluralize(first.devices - c.devices, "device") + " fewer");
  return join(parts, " and ");
}

}  // namespace

std::string behind_text(const Choice& c, const Choice& first, const ObjectiveUnit& unit) {
  const Seconds period = known_period(first), longer = known_period(c) - period;
  std::string text = unit.is_time() ? ""
                                    : fmt::format("{:.1f} % more {}, ", 100 * (c.amount / first.amount - 1),
                                                  objective_names()[static_cast<std::size_t>(unit.objective)]);
  text += fmt::format("{:.1f} % {}", std::abs(100 * (longer / period)), longer.value < 0 ? "shorter" : "longer");
  std::vector<std::string> parts;
  add_time(parts, c.work - first.work, period, "work on the busiest device");
  add_time(parts, waiting_of(c) - waiting_of(first), period, "waiting");
  add_time(parts, (known_period(c) - c.period) - (period - first.period), period, "contention");
  if (!parts.empty()) text += ": " + join(parts, ", ");
  if (const std::string saved = saved_text(c, first); !saved.empty()) text += "; needs " + saved;
  return text;
}

}  // namespace stagecraft
