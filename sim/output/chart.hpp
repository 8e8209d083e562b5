#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/output/picture.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {

struct ChartAxis {
  std::string title;                         ///< With the unit: "peak memory, GiB".
  std::vector<std::string> categories = {};  ///< Names of the values 0, 1, 2 ...; empty: values are numbers.
  bool logarithmic = false;
  bool from_zero = true;
};

enum class SeriesStyle { Joined, Unmarked, Steps, Dots };  ///< Joined: lines with marks; Unmarked: lines alone.

struct ChartSeries {
  std::string name;  ///< Empty: not in the legend.
  SeriesStyle style = SeriesStyle::Joined;
  std::vector<PicturePoint> points;        ///< Values of both axes.
  std::vector<std::string> notes = {};     ///< Text next to each point, or none.
  std::string color = {};                  ///< Empty: the color of its place in the list.
  std::vector<std::string> tooltips = {};  ///< Browsers show them at the points; may be empty.
};

/// Series over two axes, with a legend.
struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  std::optional<double> limit = {};  ///< A dashed line at this value of y.
  std::string limit_text = {};
  std::string note = {};  ///< Below the picture, in up to four lines.
  double height = 0.56;   ///< Height of the plot as a share of the picture's width.
};

Picture chart_picture(const Chart&, const PictureSize&);

/// The unit in which a largest value has one to three digits before the point, and its factor: "GiB", 2^30.
struct ChartUnit {
  const char* name;
  double factor;
};
ChartUnit time_unit(double seconds);
ChartUnit size_unit(double bytes);
/// The unit of an axis with values up to this one.
ChartUnit chart_unit(const Metric&, double largest_value);
/// What the axis is called: "period, ms".
std::string axis_title(const Metric&, const ChartUnit&);

/// A legend: one sample and name for each entry, in lines that fit between `left` and `right`. Returns the bottom of
/// it.
struct LegendEntry {
  std::string name, color;
  std::optional<MarkShape> mark = {};  ///< Nothing: a box.
  std::vector<double> dash = {};
  bool has_line = false;  ///< Through the mark.
};
double add_legend(Picture&, const std::vector<LegendEntry>&, double left, double right, double top, double text);

}  // namespace stagecraft
