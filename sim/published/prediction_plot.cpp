#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/published/prediction_errors.hpp"

namespace stagecraft {
namespace {

constexpr double kPlotSide = 560, kPlotLeft = 70, kPlotTop = 40, kLegendWidth = 190, kLegendStep = 20;
constexpr double kBand = 0.1;  // Lines of 10 % next to the diagonal.
constexpr std::string_view kColors[] = {"#4c78a8", "#e8913c", "#54a24b", "#b279a2", "#d62f4b", "#9d755d", "#72b7b2",
                                        "#eeca3b", "#7d6b91", "#1f5f3f", "#a05195", "#2f4b7c", "#8c8c8c", "#ff7c43"};

/// Predicted against measured times on logarithmic axes.
class PredictionPlot {
 public:
  PredictionPlot(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) : sets_(sets) {
    double min_time = 1e300, max_time = 0;
    for (const PredictionSet& set : sets) {
      const std::vector<double> errors = time_errors(set, devices);
      std::vector<Point>& points = points_.emplace_back();
      for (std::size_t i = 0; i < errors.size(); ++i) {
        const double measured = set.runs[i].measured.value;
        points.push_back({measured, measured * (1 + errors[i])});
        min_time = std::min({min_time, measured, points.back().predicted});
        max_time = std::max({max_time, measured, points.back().predicted});
      }
    }
    low_ = std::floor(std::log10(min_time));
    high_ = std::ceil(std::log10(max_time));
  }

  std::string svg() {
    const double width = kPlotLeft + kPlotSide + kLegendWidth, height = kPlotTop + kPlotSide + 60;
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" font-family="sans-serif" font-size="12">)",
        width, height);
    add(R"(<rect width="{:.0f}" height="{:.0f}" fill="white"/>)", width, height);
    add(R"(<text x="{}" y="24" font-size="15">Predicted and measured iterations, seconds</text>)", kPlotLeft);
    axes();
    for (std::size_t s = 0; s < points_.size(); ++s) draw(s);
    return text_ + "</svg>\n";
  }

 private:
  struct Point {
    double measured = 0, predicted = 0;
  };

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  double along(double seconds) const { return (std::log10(seconds) - low_) / (high_ - low_); }
  double x(double measured) const { return kPlotLeft + kPlotSide * along(measured); }
  double y(double predicted) const { return kPlotTop + kPlotSide * (1 - along(predicted)); }

  void axes() {
    for (double decade = low_; decade <= high_; ++decade) {
      const double seconds = std::pow(10, decade);
      add(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}" stroke="#ddd" fill="none"/>)", x(seconds),
          kPlotTop, kPlotTop + kPlotSide, kPlotLeft, y(seconds), kPlotLeft + kPlotSide);
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:g}</text>)", x(seconds), kPlotTop + kPlotSide + 18,
          seconds);
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:g}</text>)", kPlotLeft - 8, y(seconds) + 4, seconds);
    }
    const double first = std::pow(10, low_), last = std::pow(10, high_);
    for (const double factor : {1 - kBand, 1.0, 1 + kBand}) {
      const double from = std::max(first, first / factor), until = std::min(last, last / factor);
      add(R"(<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="{}" fill="none"/>)", x(from), y(from * factor), x(until),
          y(until * factor), factor == 1 ? "#222" : "#bbb");
    }
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">measured; thin lines: 10 % from it</text>)",
        kPlotLeft + kPlotSide / 2, kPlotTop + kPlotSide + 42);
    add(R"svg(<text transform="translate(20 {:.1f}) rotate(-90)" text-anchor="middle">predicted</text>)svg",
        kPlotTop + kPlotSide / 2);
  }

  void draw(std::size_t set) {
    const std::string_view color = kColors[set % std::size(kColors)];
    for (const Point& p : points_[set])
      add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5" fill="{}" fill-opacity="0.7"/>)", x(p.measured), y(p.predicted),
          color);
    const double at = kPlotTop + 10 + kLegendStep * static_cast<double>(set);
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"/>)", kPlotLeft + kPlotSide + 20, at, color);
    add(R"(<text x="{:.1f}" y="{:.1f}">{} ({})</text>)", kPlotLeft + kPlotSide + 32, at + 4,
        xml_escape(sets_[set].name), points_[set].size());
  }

  std::span<const PredictionSet> sets_;
  std::vector<std::vector<Point>> points_;
  double low_ = 0, high_ = 1;  ///< Logarithms of the ends of both axes.
  std::string text_;
};

}  // namespace

std::string prediction_svg(std::span<const PredictionSet> sets) {
  return PredictionPlot(sets, accelerators_of(sets)).svg();
}

}  // namespace stagecraft
