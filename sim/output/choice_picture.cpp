// The Pareto front of `search` as a chart of period and peak memory, with a series for each number of devices.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/chart.hpp"
#include "sim/output/choice_table.hpp"

namespace stagecraft {
namespace {

/// A range of more than this factor is drawn on a logarithmic axis, because most choices are near its low end.
constexpr double kWide = 4;
/// An axis of memory begins at zero where the least choice is below this share of the largest.
constexpr double kNarrow = 0.4;
/// The memory of the devices is drawn where a choice uses more than this share of it.
constexpr double kNearLimit = 0.3;

/// "zb-h1, TP 2 · PP 4": what tells a choice from others, in a few words; without its batch, which comes last.
std::string short_name(const Choice& c) {
  const std::string name = fmt::format("{}, {}", c.schedule, c.plan_words.substr(0, c.plan_words.rfind(" · ")));
  return c.recompute == "none" ? name : name + ", recompute " + c.recompute;
}

}  // namespace

Picture front_picture(const ChoiceTable& table, const std::string& title, const PictureSize& size) {
  double longest = 0, largest = 0, shortest = kInfinity, smallest = kInfinity;
  for (const Choice& c : table.front) {
    longest = std::max(longest, known_period(c).value), shortest = std::min(shortest, known_period(c).value);
    largest = std::max(largest, c.memory.value), smallest = std::min(smallest, c.memory.value);
  }
  const ChartUnit time = time_unit(longest), bytes = size_unit(std::max(largest, 1.0));
  Chart chart{.title = title,
              .x = {.title = fmt::format("period, {}", time.name),
                    .logarithmic = longest > kWide * shortest,
                    .from_zero = false},
              .y = {.title = fmt::format("peak memory of the fullest device, {}", bytes.name),
                    .logarithmic = largest > kWide * smallest,
                    .from_zero = smallest < kNarrow * largest},
              .series = {}};
  if (table.capacity.value > 0 && largest > kNearLimit * table.capacity.value) {
    chart.limit = table.capacity.value / bytes.factor;
    chart.limit_text = "memory of a device, " + to_text(table.capacity);
  }
  // A series for each number of devices, the third aim of the search.
  std::vector<int> counts;
  for (const Choice& c : table.front) counts.push_back(c.devices);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const int devices : counts) {
    ChartSeries series{pluralize(devices, "device"), SeriesStyle::Dots, {}};
    for (std::size_t row = 0; row < table.front.size(); ++row)
      if (const Choice& c = table.front[row]; c.devices == devices) {
        series.points.push_back({known_period(c).value / time.factor, c.memory.value / bytes.factor});
        series.notes.push_back(short_name(c));
        series.tooltips.push_back(
            fmt::format("row {}: {}, {}, {}", row + 1, short_name(c), to_text(known_period(c)), to_text(c.memory)));
      }
    chart.series.push_back(std::move(series));
  }
  chart.note = "No choice is beaten in period, memory and devices together.";
  return chart_picture(chart, size);
}

}  // namespace stagecraft
