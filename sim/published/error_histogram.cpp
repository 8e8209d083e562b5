// Draws the errors of reproduced figures and of predictions as a histogram, for the pages of results.

#include "sim/published/error_histogram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

namespace stagecraft {
namespace {

constexpr int kBins = 32;
constexpr double kBin = 0.025, kEnd = kBins / 2 * kBin;
constexpr double kPlotWidth = 640, kPlotHeight = 150, kPlotLeft = 40, kPlotTop = 22,
                 kPlotBottom = kPlotTop + kPlotHeight;

struct Bin {
  int met = 0, missed = 0;
};
using Bins = std::array<Bin, kBins>;

Bins bins_of(std::span<const JudgedError> errors) {
  Bins bins{};
  for (const JudgedError& e : errors) {
    const int at = std::clamp(static_cast<int>(std::floor(e.error / kBin)) + kBins / 2, 0, kBins - 1);
    Bin& bin = bins[at];
    ++(e.met ? bin.met : bin.missed);
  }
  return bins;
}

/// Errors of both kinds in a stack, at most `highest` of them.
std::string bars(const Bins& bins, const ErrorKinds& kinds, int highest) {
  constexpr double kBar = kPlotWidth / kBins;
  std::string text;
  for (std::size_t n = 0; n < bins.size(); ++n) {
    const double low = -kEnd + kBin * static_cast<double>(n);
    const auto box = [&](int below, int number, const char* style, const char* kind) {
      if (number == 0) return;
      text += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}{:+.1f} % to "
          "{:+.1f} %{}: {} {}</title></rect>",
          style, kPlotLeft + kBar * static_cast<double>(n), kPlotBottom - kPlotHeight * (below + number) / highest,
          kBar - 1, kPlotHeight * number / highest, n == 0 ? "up to " : "", 100 * low, 100 * (low + kBin),
          n + 1 == bins.size() ? " and more" : "", number, kind);
    };
    box(0, bins[n].met, "met", kinds.met);
    box(bins[n].met, bins[n].missed, "off", kinds.missed);
  }
  return text;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, text);
}

std::string axes(int highest, const char* error) {
  std::string text = fmt::format("<path class=\"axis\" d=\"M{} {}h{}M{} {}v{}\"/>", kPlotLeft, kPlotBottom, kPlotWidth,
                                 kPlotLeft + kPlotWidth / 2, kPlotTop, kPlotHeight);
  for (const double tick : {-0.4, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4})
    text += text_at(kPlotLeft + kPlotWidth * (tick + kEnd) / (2 * kEnd), kPlotBottom + 16, "middle",
                    tick == 0 ? "0"
                              : fmt::format("{}{:+.0f} %",
                                            tick <= -kEnd  ? "\u2264 "
                                            : tick >= kEnd ? "\u2265 "
                                                           : "",
                                            100 * tick));
  text += text_at(kPlotLeft - 6, kPlotTop + 8, "end", std::to_string(highest));
  return text + text_at(kPlotLeft + kPlotWidth / 2, kPlotBottom + 34, "middle", error);
}

std::string legend(const ErrorKinds& kinds) {
  constexpr double kSecond = 230;
  std::string text;
  for (const auto& [left, style, kind] :
       {std::tuple(kPlotLeft, "met", kinds.met), std::tuple(kPlotLeft + kSecond, "off", kinds.missed)})
    text += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"3\" width=\"10\" height=\"10\"/>", style, left) +
            text_at(left + 15, 12, "start", kind);
  return text;
}

}  // namespace

std::string error_histogram(std::span<const JudgedError> errors, const ErrorKinds& kinds, const char* error) {
  const Bins bins = bins_of(errors);
  int highest = 1;
  for (const Bin& b : bins) highest = std::max(highest, b.met + b.missed);
  return fmt::format(
             "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"Histogram of {2} "
             "errors\">",
             kPlotLeft + kPlotWidth + 24, kPlotBottom + 40, errors.size()) +
         bars(bins, kinds, highest) + axes(highest, error) + legend(kinds) + "</svg>";
}

}  // namespace stagecraft
