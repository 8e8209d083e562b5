#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/report/convergence.hpp"

namespace stagecraft {
namespace {

constexpr double kPanelWidth = 360, kPanelHeight = 260, kPlotLeft = 62, kPlotTop = 56, kGap = 74, kLegendRow = 24;
constexpr const char* kInk[] = {"#222222", "#4c78a8", "#e8913c", "#54a24b", "#b279a2",
                                "#d62f4b", "#9d755d", "#72b7b2", "#eeca3b", "#7d6b91"};

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

struct Panel {
  std::string label;
  std::function<double(const MethodRuns&, int updates)> x;
};

class Plot {
 public:
  explicit Plot(const Convergence& c) : c_(c) {
    double low = 1e300, high = 0;
    for (const MethodRuns& m : c.methods)
      for (const auto& [updates, loss] : mean_curve(m))
        if (std::isfinite(loss) && loss > 0) low = std::min(low, loss), high = std::max(high, loss);
    // What diverged would press everything else flat.
    if (!c.methods.empty() && !mean_curve(c.methods.front()).empty())
      high = std::min(high, 3 * mean_curve(c.methods.front()).front().second);
    low_ = std::log10(low);
    high_ = std::log10(std::max(high, low * 1.01));
  }

  std::string run(const std::string& title) {
    std::vector<Panel> panels{{"updates", [](const MethodRuns&, int u) { return static_cast<double>(u); }},
                              {"simulated seconds", [](const MethodRuns& m, int u) {
                                 return u == 0 ? 0 : u * m.update.value + m.fill.value;
                               }}};
    if (c_.methods.front().measured.value > 0)
      panels.push_back({"measured seconds", [](const MethodRuns& m, int u) { return u * m.measured.value; }});
    const double width = kPlotLeft + static_cast<double>(panels.size()) * (kPanelWidth + kGap);
    const double height =
        kPlotTop + kPanelHeight + 50 + kLegendRow * std::ceil(static_cast<double>(c_.methods.size()) / 5);
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" font-family="sans-serif" font-size="12">)",
        width, height);
    add(R"(<rect width="{:.0f}" height="{:.0f}" fill="white"/><text x="12" y="22" font-size="15">{}</text>)", width,
        height, xml_escape(title));
    for (std::size_t p = 0; p < panels.size(); ++p)
      panel(panels[p], kPlotLeft + static_cast<double>(p) * (kPanelWidth + kGap));
    legend();
    return text_ + "</svg>\n";
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  double y(double loss) const {
    const double at = std::clamp(std::log10(std::max(loss, 1e-300)), low_, high_);
    return kPlotTop + kPanelHeight * (1 - (at - low_) / (high_ - low_));
  }

  void panel(const Panel& panel, double left) {
    double max_x = 0;
    for (const MethodRuns& m : c_.methods)
      for (const auto& [updates, loss] : mean_curve(m)) max_x = std::max(max_x, panel.x(m, updates));
    if (max_x <= 0) max_x = 1;
    add(R"(<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" fill="none" stroke="#999"/>)", left, kPlotTop,
        kPanelWidth, kPanelHeight);
    for (int i = 0; i <= 4; ++i) {
      const double x = left + kPanelWidth * i / 4;
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.4g}</text>)", x, kPlotTop + kPanelHeight + 18,
          max_x * i / 4);
      const double loss = std::pow(10, low_ + (high_ - low_) * i / 4);
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:.3g}</text>)", left - 6, y(loss) + 4, loss);
      add(R"(<path d="M{:.1f} {:.1f}h{}" stroke="#e5e5e5"/>)", left, y(loss), kPanelWidth);
    }
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">loss against {}</text>)", left + kPanelWidth / 2,
        kPlotTop - 10, panel.label);
    for (std::size_t i = 0; i < c_.methods.size(); ++i) {
      std::string points;
      for (const auto& [updates, loss] : mean_curve(c_.methods[i]))
        if (std::isfinite(loss))
          points +=
              fmt::format("{:.1f},{:.1f} ", left + kPanelWidth * panel.x(c_.methods[i], updates) / max_x, y(loss));
      add(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="1.6"/>)", points, ink(i));
    }
  }

  static const char* ink(std::size_t i) { return kInk[i % std::size(kInk)]; }

  void legend() {
    for (std::size_t i = 0; i < c_.methods.size(); ++i) {
      const double x = kPlotLeft + static_cast<double>(i % 5) * 210;
      const double at = kPlotTop + kPanelHeight + 46 + kLegendRow * static_cast<double>(i / 5);
      add(R"(<path d="M{:.1f} {:.1f}h22" stroke="{}" stroke-width="3"/><text x="{:.1f}" y="{:.1f}">{}</text>)", x,
          at - 4, ink(i), x + 28, at, xml_escape(c_.methods[i].name));
    }
  }

  const Convergence& c_;
  double low_ = 0, high_ = 1;
  std::string text_;
};

}  // namespace

std::string convergence_svg(const Convergence& c, const std::string& title) { return Plot(c).run(title); }

}  // namespace stagecraft
