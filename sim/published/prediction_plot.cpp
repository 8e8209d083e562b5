// Predicted against measured times, as a picture.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/output/chart.hpp"
#include "sim/published/prediction_errors.hpp"

namespace stagecraft {
namespace {

constexpr double kBand = 0.1;  // Lines of 10 % next to the diagonal.
constexpr double kNearlySquare = 0.8;

/// A line where the predicted time is `factor` times the measured one, within the square from low to high.
ChartSeries line_of(double factor, double low, double high, const char* color) {
  const double from = std::max(low, low / factor), until = std::min(high, high / factor);
  return {.name = {},
          .style = SeriesStyle::Unmarked,
          .points = {{from, from * factor}, {until, until * factor}},
          .notes = {},
          .color = color};
}

}  // namespace

Picture prediction_picture(std::span<const PredictionSet> sets, const PictureSize& size) {
  Chart chart{.title = "Predicted and measured iterations",
              .x = {.title = "measured, s", .logarithmic = true},
              .y = {.title = "predicted, s", .logarithmic = true},
              .series = {}};
  chart.height = kNearlySquare;
  double low = kInfinity, high = 0;
  for (const PredictionSet& set : sets) {
    const std::vector<double> errors = time_errors(set);
    ChartSeries series{fmt::format("{} ({})", set.name, errors.size()), SeriesStyle::Dots, {}};
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const double measured = set.runs[i].measured.value, predicted = measured * (1 + errors[i]);
      series.points.push_back({measured, predicted});
      low = std::min({low, measured, predicted});
      high = std::max({high, measured, predicted});
    }
    chart.series.push_back(std::move(series));
  }
  for (const double factor : {1 - kBand, 1.0, 1 + kBand})
    chart.series.push_back(line_of(factor, low, high, factor == 1 ? "#18202a" : "#9aa3ad"));
  chart.note = "On the middle line a prediction is exact; the outer ones are 10 % from it.";
  return chart_picture(chart, size);
}

}  // namespace stagecraft
