// Draws a Chart as a Picture: axes with round or logarithmic ticks, series, notes at points, a limit line and a legend.
// Pictures of memory, losses, fronts, sweeps and predictions are charts; timelines share the units and the legend.

#include "sim/output/chart.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

constexpr const char* kChartInk = "#18202a";
constexpr const char* kChartDim = "#55606d";
constexpr const char* kChartGrid = "#e2e6ea";
constexpr const char* kLimit = "#b3261e";
constexpr int kMostTicks = 6;
constexpr std::size_t kNoteLines = 4;
constexpr MarkShape kShapes[] = {MarkShape::Circle, MarkShape::Square, MarkShape::Triangle, MarkShape::Diamond};

std::vector<double> dash_of(std::size_t n) {
  const std::vector<double> dashes[] = {{}, {4, 2}, {1, 1.5}, {5, 1.5, 1, 1.5}};
  return dashes[n % std::size(dashes)];
}
/// With the six colors of series_color(), 24 series in a row differ in color or shape.
MarkShape shape_of(std::size_t n) { return kShapes[(n + n / 12) % std::size(kShapes)]; }

/// One axis: its range, its ticks, and where a value is between 0 and 1.
class AxisScale {
 public:
  AxisScale(const ChartAxis& axis, double low, double high) : axis_(&axis) {
    if (!axis.categories.empty()) {
      low_ = -0.5;
      high_ = static_cast<double>(axis.categories.size()) - 0.5;
    } else if (axis.logarithmic && low > 0) {
      low_ = std::log10(low) - 0.03, high_ = std::log10(high) + 0.03;
      log_ = true;
    } else {
      const double room = high > low ? 0.05 * (high - low) : std::max(std::abs(high) * 0.1, 1e-12);
      low_ = axis.from_zero && low >= 0 ? 0 : low - room;
      high_ = high + room;
      reach_ticks(low, high);
    }
  }

  double share(double value) const { return ((log_ ? std::log10(value) : value) - low_) / (high_ - low_); }

  /// Values and texts of the ticks, at most about `max_ticks`.
  std::vector<std::pair<double, std::string>> ticks(int max_ticks) const {
    std::vector<std::pair<double, std::string>> result;
    if (!axis_->categories.empty()) {
      const int every =
          std::max(1, static_cast<int>(std::ceil(static_cast<double>(axis_->categories.size()) / max_ticks)));
      for (std::size_t n = 0; n < axis_->categories.size(); n += every)
        result.emplace_back(static_cast<double>(n), axis_->categories[n]);
    } else {
      if (log_) result = decade_ticks(max_ticks);
      constexpr std::size_t kFewTicks = 3;
      if (result.size() >= kFewTicks) return result;
      result.clear();
      const std::vector<double> values =
          log_ ? round_ticks(std::pow(10, low_), std::pow(10, high_), max_ticks) : round_ticks(low_, high_, max_ticks);
      const double step = values.size() > 1 ? values[1] - values[0] : 1;
      for (const double value : values) result.emplace_back(value, tick_text(value, step));
    }
    return result;
  }

 private:
  /// Moves the ends so that the first and the last tick are beyond what is drawn, and the highest point can be read.
  void reach_ticks(double low, double high) {
    // A longer range may have a larger step, whose last tick is lower again.
    constexpr int kMostRounds = 4;
    for (int round = 0; round < kMostRounds; ++round) {
      const std::vector<double> values = round_ticks(low_, high_, kMostTicks);
      if (values.size() < 2) return;
      const double step = values[1] - values[0];
      if (values.back() < high) high_ = values.back() + step;
      if (values.front() > low) low_ = values.front() - step;
      if (values.back() >= high && values.front() <= low) return;
    }
  }

  /// 1, 2 and 5 times each power of ten, or the powers alone where there are many.
  std::vector<std::pair<double, std::string>> decade_ticks(int max_ticks) const {
    std::vector<std::pair<double, std::string>> result;
    const bool fine = 3 * (high_ - low_) <= max_ticks;
    for (double decade = std::floor(low_); decade <= high_; ++decade)
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10, decade), at = std::log10(value);
        if ((factor == 1 || fine) && at >= low_ && at <= high_) result.emplace_back(value, fmt::format("{:g}", value));
      }
    return result;
  }

  const ChartAxis* axis_;
  double low_ = 0, high_ = 1;
  bool log_ = false;
};

struct ValueRange {
  double low = kInfinity, high = -kInfinity;

  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
};

/// Draws a chart from its title to its note.
class ChartDrawing {
 public:
  ChartDrawing(const Chart& chart, const PictureSize& size)
      : c_(chart), text_(size.text), x_(chart.x, 0, 1), y_(chart.y, 0, 1) {
    picture_.title = size.title.value_or(chart.title);
    picture_.width = size.width;
    ValueRange x, y;
    for (const ChartSeries& s : chart.series)
      for (const PicturePoint& p : s.points) x.add(p.x), y.add(p.y);
    if (chart.limit) y.add(*chart.limit);
    if (x.low > x.high) x = {0, 1}, y = {0, 1};
    x_ = AxisScale(chart.x, x.low, x.high);
    y_ = AxisScale(chart.y, y.low, y.high);
  }

  Picture draw() {
    const double top = add_title(picture_, text_, 0.5 * text_);
    double widest = 0;
    for (const auto& [value, text] : y_.ticks(kMostTicks)) widest = std::max(widest, text_width(text, text_));
    left_ = widest + 2.9 * text_;
    top_ = top + 1.1 * text_;
    width_ = picture_.width - left_ - 1.2 * text_;
    height_ = c_.height * picture_.width;
    axes();
    limit();
    for (std::size_t n = 0; n < c_.series.size(); ++n) series(n);
    finish();
    return std::move(picture_);
  }

 private:
  void put(PictureItem item) { picture_.items.push_back(std::move(item)); }
  PicturePoint at(const PicturePoint& value) const {
    return {left_ + width_ * x_.share(value.x), top_ + height_ * (1 - y_.share(value.y))};
  }
  std::string color(std::size_t n) const { return c_.series[n].color.empty() ? series_color(n) : c_.series[n].color; }

  void axes() {
    const double bottom = top_ + height_;
    for (const auto& [value, text] : y_.ticks(kMostTicks)) {
      const double y = top_ + height_ * (1 - y_.share(value));
      put(Polyline{{{left_, y}, {left_ + width_, y}}, kChartGrid, 0.5});
      put(Label{{left_ - 0.5 * text_, y + 0.35 * text_}, text, text_, Anchor::End, kChartDim});
    }
    double widest = 3 * text_;
    for (const std::string& name : c_.x.categories) widest = std::max(widest, text_width(name, text_) + text_);
    for (const auto& [value, text] : x_.ticks(std::max(2, static_cast<int>(width_ / widest)))) {
      const double x = left_ + width_ * x_.share(value);
      put(Polyline{{{x, bottom}, {x, bottom + 0.35 * text_}}, kChartDim, 0.5});
      put(Label{{x, bottom + 1.4 * text_}, text, text_, Anchor::Middle, kChartDim});
    }
    put(Polyline{{{left_, bottom}, {left_ + width_, bottom}}, kChartDim, 0.6});
    put(Label{{left_ + width_ / 2, bottom + 2.8 * text_}, c_.x.title, text_, Anchor::Middle, kChartInk});
    put(Label{{1.2 * text_, top_ + height_ / 2}, c_.y.title, text_, Anchor::Middle, kChartInk, false, true});
  }

  void series(std::size_t n) {
    const ChartSeries& s = c_.series[n];
    if (s.style != SeriesStyle::Dots && s.points.size() > 1) {
      Polyline line{{}, color(n), 1.1, s.style == SeriesStyle::Joined ? dash_of(n) : std::vector<double>{}};
      for (const PicturePoint& p : s.points) {
        const PicturePoint place = at(p);
        if (s.style == SeriesStyle::Steps && !line.places.empty())
          line.places.push_back({place.x, line.places.back().y});
        line.places.push_back(place);
      }
      put(std::move(line));
    }
    if (s.style == SeriesStyle::Steps || s.style == SeriesStyle::Unmarked) return;
    for (std::size_t k = 0; k < s.points.size(); ++k)
      put(Mark{at(s.points[k]), 0.28 * text_, color(n), shape_of(n), k < s.tooltips.size() ? s.tooltips[k] : ""});
    notes(s);
  }

  /// Next to each point where no other note is; a note that finds no room is left out of the picture.
  void notes(const ChartSeries& s) {
    const double size = 0.9 * text_;
    for (std::size_t k = 0; k < s.notes.size() && k < s.points.size(); ++k) {
      const PicturePoint place = at(s.points[k]);
      const double width = text_width(s.notes[k], size);
      const bool right = place.x + 0.6 * text_ + width < left_ + width_;
      const double left = right ? place.x + 0.6 * text_ : place.x - 0.6 * text_ - width;
      for (const double shift : {-0.5, 0.35, 1.2}) {
        const Box box{left, place.y + shift * text_ - size, width, size, {}, {}};
        const auto meets = [&](const Box& b) {
          return box.left < b.left + b.width && b.left < box.left + box.width && box.top < b.top + b.height &&
                 b.top < box.top + box.height;
        };
        if (left < left_ || box.top < top_ - text_ || box.top + size > top_ + height_ ||
            std::any_of(noted_.begin(), noted_.end(), meets) || covers_mark(box))
          continue;
        noted_.push_back(box);
        put(Label{{left, box.top + 0.85 * size}, s.notes[k], size, Anchor::Start, kChartInk});
        break;
      }
    }
  }

  bool covers_mark(const Box& box) const {
    const double room = 0.3 * text_;
    for (const ChartSeries& s : c_.series)
      for (const PicturePoint& p : s.points) {
        const PicturePoint mark = at(p);
        if (mark.x + room > box.left && mark.x - room < box.left + box.width && mark.y + room > box.top &&
            mark.y - room < box.top + box.height)
          return true;
      }
    return false;
  }

  void limit() {
    if (!c_.limit) return;
    const double y = top_ + height_ * (1 - y_.share(*c_.limit));
    put(Polyline{{{left_, y}, {left_ + width_, y}}, kLimit, 0.8, {3, 2}});
    limit_label(y);
  }

  /// Above or below the line, at its right or left end: the first place that covers no mark. Notes at points avoid it.
  void limit_label(double y) {
    const std::string text = fitted_text(c_.limit_text, text_, width_);
    const double width = text_width(text, text_);
    const auto place = [&](double left, double baseline) {
      return Box{left, baseline - 0.85 * text_, width, 1.1 * text_, {}, {}};
    };
    const double right = left_ + width_ - width, above = y - 0.4 * text_, below = y + 1.2 * text_;
    const std::vector<Box> places{place(right, above), place(left_, above), place(right, below), place(left_, below)};
    const auto free = std::find_if(places.begin(), places.end(), [this](const Box& box) { return !covers_mark(box); });
    const Box& box = free == places.end() ? places.front() : *free;
    noted_.push_back(box);
    put(Label{{box.left, box.top + 0.85 * text_}, text, text_, Anchor::Start, kLimit});
  }

  LegendEntry legend_entry(std::size_t n) const {
    const ChartSeries& s = c_.series[n];
    LegendEntry entry{s.name, color(n)};
    if (s.style != SeriesStyle::Steps && s.style != SeriesStyle::Unmarked) entry.mark = shape_of(n);
    entry.has_line = s.style == SeriesStyle::Joined;
    if (entry.has_line) entry.dash = dash_of(n);
    return entry;
  }

  void finish() {
    std::vector<LegendEntry> entries;
    for (std::size_t n = 0; n < c_.series.size(); ++n)
      if (!c_.series[n].name.empty()) entries.push_back(legend_entry(n));
    double bottom = top_ + height_ + 3.6 * text_;
    if (!entries.empty()) bottom = add_legend(picture_, entries, left_, left_ + width_, bottom, text_);
    if (!c_.note.empty())
      for (const std::string& line : wrapped_text(c_.note, text_, width_, kNoteLines)) {
        bottom += 1.5 * text_;
        put(Label{{left_, bottom}, line, text_, Anchor::Start, kChartDim});
      }
    picture_.height = bottom + 0.6 * text_;
  }

  const Chart& c_;
  double text_, left_ = 0, top_ = 0, width_ = 0, height_ = 0;
  AxisScale x_, y_;
  std::vector<Box> noted_;
  Picture picture_;
};

}  // namespace

Picture chart_picture(const Chart& chart, const PictureSize& size) { return ChartDrawing(chart, size).draw(); }

ChartUnit time_unit(double seconds) {
  constexpr ChartUnit kUnits[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
  for (const ChartUnit& unit : kUnits)
    if (seconds >= unit.factor) return unit;
  return {"ns", 1e-9};
}
ChartUnit size_unit(double bytes) {
  constexpr ChartUnit kUnits[] = {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}};
  for (const ChartUnit& unit : kUnits)
    if (bytes >= unit.factor) return unit;
  return {"B", 1};
}

ChartUnit chart_unit(const Metric& m, double largest_value) {
  switch (m.unit) {
    case MetricUnit::Time:
    case MetricUnit::TrainingTime:
      return time_unit(largest_value);
    case MetricUnit::Size:
      return size_unit(largest_value);
    case MetricUnit::Share:
      return {"%", 0.01};
    case MetricUnit::SampleRate:
    case MetricUnit::TokenRate:
    case MetricUnit::Energy:
      return {unit_name(m.unit), 1};
    case MetricUnit::Cost:
    case MetricUnit::YesNo:
    case MetricUnit::Count:
    case MetricUnit::Number:
      break;
  }
  return {"", 1};
}

std::string axis_title(const Metric& m, const ChartUnit& unit) {
  return *unit.name ? fmt::format("{}, {}", m.heading, unit.name) : m.heading;
}

double add_legend(Picture& picture, const std::vector<LegendEntry>& entries, double left, double right, double top,
                  double text) {
  double x = left, baseline = top + text;
  for (const LegendEntry& e : entries) {
    const std::string name = fitted_text(e.name, text, right - left - 3 * text);
    const double width = 2.6 * text + text_width(name, text);
    if (x > left && x + width > right) x = left, baseline += 1.5 * text;
    const PicturePoint middle{x + 0.9 * text, baseline - 0.35 * text};
    if (e.mark) {
      if (e.has_line)
        picture.items.push_back(Polyline{{{x, middle.y}, {x + 1.8 * text, middle.y}}, e.color, 1.1, e.dash});
      picture.items.push_back(Mark{middle, 0.28 * text, e.color, *e.mark});
    } else {
      picture.items.push_back(Box{x + 0.6 * text, baseline - 0.8 * text, 1.2 * text, 0.9 * text, e.color, {}});
    }
    picture.items.push_back(Label{{x + 2.2 * text, baseline}, name, text, Anchor::Start, kChartInk});
    x += width + 1.2 * text;
  }
  return baseline;
}

}  // namespace stagecraft
