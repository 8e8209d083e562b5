#include "sim/published/plot.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "sim/core/escape.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

constexpr double kSide = 210, kLeft = 56, kTop = 10;
constexpr std::size_t kFewest = 4;  // Figures; fewer are read sooner than looked at.

/// Both axes of a plot, which are the same.
class Scale {
 public:
  explicit Scale(std::span<const Reproduced> cells) {
    for (const Reproduced& c : cells)
      for (const double v : {c.published, c.ours})
        if (c.verdict != Verdict::Failed) low_ = std::min(low_, v), high_ = std::max(high_, v);
    log_ = low_ > 0 && high_ > 30 * low_;
    const double margin = log_ ? 1.15 : 0.05 * (high_ - low_);
    low_ = log_ ? low_ / margin : low_ >= 0 ? std::max(0.0, low_ - margin) : low_ - margin;
    high_ = log_ ? high_ * margin : high_ + margin;
  }

  bool has_extent() const { return low_ < high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  double share(double v) const {
    return log_ ? std::log(v / low_) / std::log(high_ / low_) : (v - low_) / (high_ - low_);
  }

  /// Round numbers: powers of ten, or steps of 1, 2 or 5 times one.
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (log_) {
      for (double t = std::pow(10, std::ceil(std::log10(low_))); t <= high_; t *= 10) ticks.push_back(t);
      if (ticks.size() > 1) return ticks;
      ticks.clear();
    }
    const double fine = (high_ - low_) / 5, ten = std::pow(10, std::floor(std::log10(fine)));
    const double step = fine <= ten ? ten : fine <= 2 * ten ? 2 * ten : fine <= 5 * ten ? 5 * ten : 10 * ten;
    for (double n = std::ceil(low_ / step); n * step <= high_; ++n) ticks.push_back(n * step);
    return ticks;
  }

 private:
  double low_ = kInfinity, high_ = -kInfinity;
  bool log_ = false;
};

double x(const Scale& s, double v) { return kLeft + kSide * s.share(v); }
double y(const Scale& s, double v) { return kTop + kSide * (1 - s.share(v)); }

/// Where ours may lie: `tolerance` times the published figure to both sides.
std::string band(const Scale& s, double tolerance) {
  constexpr double kSeen = 0.005;
  if (tolerance < kSeen || tolerance >= 1 || s.low() < 0) return "";
  std::string points;
  const auto corner = [&](double published, double factor) {
    points += fmt::format("{:.1f},{:.1f} ", x(s, published), y(s, published * factor));
  };
  const double low = s.low() > 0 ? s.low() : 0;
  corner(low, 1 - tolerance), corner(s.high(), 1 - tolerance), corner(s.high(), 1 + tolerance);
  corner(low, 1 + tolerance);
  // A picture of its own cuts off what lies outside.
  return fmt::format(
      "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\" viewBox=\"{0} {1} {2} {2}\"><polygon class=\"band\" "
      "points=\"{3}\"><title>within {4:.3g} %</title></polygon></svg>",
      kLeft, kTop, kSide, points, 100 * tolerance);
}

std::string axes(const Scale& s) {
  std::string text = fmt::format("<path class=\"axis\" d=\"M{0} {1}v{2}h{2}v-{2}zM{0} {3}L{4} {1}\"/>", kLeft, kTop,
                                 kSide, kTop + kSide, kLeft + kSide);
  for (const double t : s.ticks())
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.4g}</text>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>",
        x(s, t), kTop + kSide + 16, t, kLeft - 6, y(s, t) + 4, t);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">published</text>", kLeft + kSide / 2,
                      kTop + kSide + 34);
  return text + fmt::format("<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\">ours</text>",
                            kTop + kSide / 2);
}

}  // namespace

std::string plot_svg(const PublishedTable& t, std::span<const Reproduced> cells) {
  const Scale scale(cells);
  if (cells.size() < kFewest || !scale.has_extent()) return "";
  std::string text = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\"><title>ours over published</title>{2}",
      kLeft + kSide + 14, kTop + kSide + 42, band(scale, t.closeness.tolerance.value_or(0)) + axes(scale));
  for (const Reproduced& c : cells) {
    if (c.verdict == Verdict::Failed) continue;
    text += fmt::format(
        "<circle class=\"point{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}, {}: published {:.4g}, ours "
        "{:.4g}</title></circle>",
        c.verdict == Verdict::Missed ? " off" : "", x(scale, c.published), y(scale, c.ours),
        xml_escape(t.rows[c.row].name), xml_escape(t.columns[c.column].name), c.published, c.ours);
  }
  return text + "</svg>";
}

}  // namespace stagecraft
