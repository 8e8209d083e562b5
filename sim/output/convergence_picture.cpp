// Charts of `stagecraft convergence`: the mean loss of each method over updates, simulated time or measured time.

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/output/chart.hpp"
#include "sim/output/convergence.hpp"

namespace stagecraft {
namespace {

/// Mean over the seeds at each evaluation; a run that diverged does not count after its last evaluation.
std::vector<std::pair<int, double>> mean_curve(const MethodRuns& m) {
  std::vector<std::pair<int, double>> points;
  std::size_t longest = 0;
  for (const Curve& c : m.curves) longest = std::max(longest, c.evaluations.size());
  for (std::size_t i = 0; i < longest; ++i) {
    double sum = 0, count = 0;
    int updates = 0;
    for (const Curve& c : m.curves)
      if (i < c.evaluations.size()) sum += c.evaluations[i].loss, updates = c.evaluations[i].updates, ++count;
    points.emplace_back(updates, sum / count);
  }
  return points;
}

/// Time after this number of updates.
double time_after(const MethodRuns& m, int updates, LossOver over) {
  if (over == LossOver::Updates) return updates;
  if (over == LossOver::Measured) return updates * m.measured.value;
  return updates == 0 ? 0 : updates * m.update.value + m.fill.value;
}

/// What diverged would press everything else flat, so losses above three times the first one are not drawn.
double largest_loss(const Convergence& c) {
  constexpr double kDrawn = 3;
  const std::vector<std::pair<int, double>> first =
      c.methods.empty() ? std::vector<std::pair<int, double>>() : mean_curve(c.methods.front());
  return first.empty() || !std::isfinite(first.front().second) ? kInfinity : kDrawn * first.front().second;
}

std::string axis_title(LossOver over, const ChartUnit& unit) {
  if (over == LossOver::Updates) return "updates";
  return std::string(over == LossOver::Measured ? "measured time, " : "simulated time, ") + unit.name;
}

}  // namespace

Picture convergence_picture(const Convergence& c, const std::string& title, LossOver over, const PictureSize& size) {
  double longest = 0;
  for (const MethodRuns& m : c.methods)
    for (const auto& [updates, loss] : mean_curve(m)) longest = std::max(longest, time_after(m, updates, over));
  const ChartUnit unit = over == LossOver::Updates ? ChartUnit{"", 1} : time_unit(longest);
  Chart chart{.title = title,
              .x = {.title = axis_title(over, unit)},
              .y = {.title = "loss of the weights", .logarithmic = true},
              .series = {}};
  const double limit = largest_loss(c);
  bool left_out = false;
  for (const MethodRuns& m : c.methods) {
    ChartSeries series{m.name, SeriesStyle::Joined, {}};
    for (const auto& [updates, loss] : mean_curve(m)) {
      const bool drawn = loss > 0 && loss <= limit;
      if (drawn) series.points.push_back({time_after(m, updates, over) / unit.factor, loss});
      left_out |= !drawn;
    }
    chart.series.push_back(std::move(series));
  }
  const bool several =
      std::any_of(c.methods.begin(), c.methods.end(), [](const MethodRuns& m) { return m.curves.size() > 1; });
  if (several) chart.note = "Mean over the seeds.";
  if (left_out) chart.note += fmt::format("{}Losses of runs that diverge are not drawn.", several ? " " : "");
  return chart_picture(chart, size);
}

Picture convergence_pictures(const Convergence& c, const std::string& title, const PictureSize& size) {
  std::vector<LossOver> panels{LossOver::Updates, LossOver::Simulated};
  if (!c.methods.empty() && c.methods.front().measured.value > 0) panels.push_back(LossOver::Measured);
  const PictureSize each{size.width / static_cast<double>(panels.size()), size.text};
  // One line, and an empty one above the other panels, so that all begin at the same height.
  const std::string line =
      fitted_text(size.title.value_or(title), 1.15 * size.text, each.width - 1.4 * size.text, true);
  std::vector<Picture> pictures;
  for (const LossOver over : panels)
    pictures.push_back(convergence_picture(c, pictures.empty() || line.empty() ? line : " ", over, each));
  return side_by_side(std::move(pictures));
}

}  // namespace stagecraft
