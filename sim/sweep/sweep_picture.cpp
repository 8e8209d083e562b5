// Draws the results of a sweep as lines, a map or a Pareto front.

#include "sim/sweep/sweep_picture.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/chart.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/comparable_rows.hpp"
#include "sim/sweep/points.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kCaptionLines = 4;

/// The paths in which some pair of points differs.
std::vector<VariedPath> axes_of(const SweepTable& table) {
  std::vector<VariedPath> axes = varied_paths(table);
  std::erase_if(axes, [](const VariedPath& a) { return a.values.size() < 2; });
  return axes;
}

/// Lower case, with spaces for hyphens and underscores.
std::string plain_words(std::string_view text) {
  std::string words(trim(text));
  for (char& c : words) c = c == '-' || c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return words;
}

/// The metric with this name, this heading of a table, page or picture, or the only one whose name begins so.
const Metric* metric_called(const std::string& word) {
  const std::string wanted = plain_words(word);
  constexpr std::pair<const char*, const char*> kOtherWords[] = {{"iteration time", "period_s"},
                                                                 {"price", "dollars_per_billion_tokens"}};
  for (const auto& [other, name] : kOtherWords)
    if (wanted == other) return find_metric(name);
  const Metric* match = nullptr;
  int matches = 0;
  for (const Metric& m : metrics()) {
    for (const char* name : {m.name, m.heading, column_heading(m)})
      if (plain_words(name) == wanted) return &m;
    if (plain_words(m.name).starts_with(wanted + " ")) match = &m, ++matches;
  }
  return matches == 1 ? match : nullptr;
}

class SweepDrawing {
 public:
  SweepDrawing(const SweepTable& table, const SweepView& view)
      : t_(table),
        labels_(view.labels),
        axes_(axes_of(table)),
        compared_{.usual_instead = std::vector<std::optional<double>>(table.rows.size())},
        metric_(metric_of(view)),
        more_(metric_.better == Better::More) {
    if (view.kind == SweepView::Kind::Front) {
      compared_ = rows_on_usual_devices(t_);  // Peak memories of other numbers of devices cannot be compared.
      return;
    }
    if (axes_.empty()) throw InputError("nothing varies in this sweep, so there is nothing to draw", "--draw front");
    x_ = axis_named(view.x, widest(nullptr));
    by_ = view.by.empty() && axes_.size() == 1 ? nullptr : axis_named(view.by, widest(x_));
    if (view.kind == SweepView::Kind::Map && (!by_ || by_ == x_))
      throw InputError("a map needs two paths that vary", "--draw lines");
    std::vector<const VariedPath*> shown{x_};
    if (by_) shown.push_back(by_);
    compared_ = comparable_rows(t_, metric_, shown);
  }

  Chart lines() const {
    double largest_value = 0;
    for (std::size_t r = 0; r < t_.rows.size(); ++r) largest_value = std::max(largest_value, figure(r).value_or(0));
    const ChartUnit unit = chart_unit(metric_, largest_value);
    Chart chart{
        .title = t_.title, .x = {title_of(x_->path), x_->values}, .y = {figure_title(metric_, unit)}, .series = {}};
    for (int line = 0; line < (by_ ? static_cast<int>(by_->values.size()) : 1); ++line) {
      ChartSeries series{by_ ? by_->values[line] : "", SeriesStyle::Joined, {}};
      for (int x = 0; x < static_cast<int>(x_->values.size()); ++x)
        if (const auto row = best(x, by_ ? line : -2))
          series.points.push_back({static_cast<double>(x), *figure(*row) / unit.factor});
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
    chart.note = note();
    return chart;
  }

  Chart front() const {
    double largest_value = 0, largest = 1;
    for (std::size_t r = 0; r < t_.rows.size(); ++r) {
      largest_value = std::max(largest_value, figure(r).value_or(0));
      largest = std::max(largest, figure(r, "peak_memory_bytes").value_or(0));
    }
    const Metric& peak_memory = metrics()[metric("peak_memory_bytes")];
    const ChartUnit unit = chart_unit(metric_, largest_value), memory = chart_unit(peak_memory, largest);
    Chart chart{.title = t_.title,
                .x = {.title = figure_title(metric_, unit), .from_zero = false},
                .y = {figure_title(peak_memory, memory)},
                .series = {}};
    ChartSeries ahead{
        devices().size() > 1 ? "not beaten in both on as many devices" : "not beaten in both", SeriesStyle::Dots, {}},
        rest{"others", SeriesStyle::Dots, {}, {}, "#9aa3ad"};
    for (std::size_t r = 0; r < t_.rows.size(); ++r) {
      const auto value = figure(r), bytes = figure(r, "peak_memory_bytes");
      if (!value || !bytes) continue;
      ChartSeries& series = is_beaten(r, *value, *bytes) ? rest : ahead;
      series.points.push_back({*value / unit.factor, *bytes / memory.factor});
      if (&series == &ahead) series.notes.push_back(label_of(r));
    }
    for (ChartSeries* s : {&rest, &ahead})
      if (!s->points.empty()) chart.series.push_back(std::move(*s));
    chart.note = note();
    return chart;
  }

  Picture map(const PictureSize& size) const;

 private:
  /// The label of a path, or the path.
  std::string title_of(const std::string& path) const {
    const auto label = labels_.find(path);
    return label == labels_.end() ? path : label->second;
  }
  std::string figure_title(const Metric& m, const ChartUnit& unit) const {
    const auto label = labels_.find(m.name);
    return label == labels_.end() ? axis_title(m, unit) : label->second;
  }

  const Metric& metric_of(const SweepView& view) const {
    if (!view.metric.empty()) {
      if (const Metric* m = metric_called(view.metric)) return *m;
      std::vector<std::string> names;
      for (const Metric& m : metrics()) names.emplace_back(m.name);
      throw InputError(fmt::format("'{}' is not a figure of sweeps", view.metric),
                       closest(view.metric, names) ? suggest(view.metric, names) : "it may be " + join(names));
    }
    // Times of an iteration cannot be compared where points differ in their samples.
    std::optional<double> samples;
    for (std::size_t r = 0; r < t_.rows.size(); ++r)
      if (const auto value = figure(r, "samples")) {
        if (samples && *samples != *value) return metrics()[metric("throughput_samples_per_s")];
        samples = value;
      }
    return metrics()[metric("period_s")];
  }

  std::optional<double> figure(std::size_t row, std::string_view name) const {
    const std::size_t at = metric(name);
    const SweepRow& r = t_.rows[row];
    if (r.status != "ok" || !compared_.has(row) || at >= r.figures.size() || !std::isfinite(r.figures[at])) return {};
    return r.figures[at];
  }
  std::optional<double> figure(std::size_t row) const { return figure(row, metric_.name); }

  /// The axis with most values, sizes before names; then other axes than `taken`.
  const VariedPath* widest(const VariedPath* taken) const {
    const VariedPath* match = nullptr;
    for (const VariedPath& a : axes_) {
      if (&a == taken) continue;
      // Across stand sizes, down and for lines names.
      const bool wanted = a.is_number == (taken == nullptr), had = match && match->is_number == (taken == nullptr);
      if (!match || (wanted && !had) || (wanted == had && a.values.size() > match->values.size())) match = &a;
    }
    return match;
  }
  const VariedPath* axis_named(const std::string& path, const VariedPath* usual) const {
    if (path.empty()) return usual;
    std::vector<std::string> paths;
    for (const VariedPath& a : axes_) {
      if (a.path == path) return &a;
      paths.push_back(a.path);
    }
    const auto ends_so = [&](const VariedPath& a) { return last_field(a.path) == path; };
    if (std::count_if(axes_.begin(), axes_.end(), ends_so) == 1)
      return &*std::find_if(axes_.begin(), axes_.end(), ends_so);
    throw InputError(fmt::format("'{}' does not vary in this sweep", path), suggest(path, paths));
  }

  bool is_better(double a, double b) const { return more_ ? a > b : a < b; }
  /// The row with the best figure of the points with these values; `by` is -2 for any.
  std::optional<std::size_t> best(int x, int by) const {
    std::optional<std::size_t> match;
    for (std::size_t r = 0; r < t_.rows.size(); ++r) {
      if (x_->value_of[r] != x || (by != -2 && by_->value_of[r] != by)) continue;
      if (const auto value = figure(r); value && (!match || is_better(*value, *figure(*match)))) match = r;
    }
    return match;
  }
  /// Whether no other row on as many devices is better; on any, for a metric that means the same on any.
  bool is_best(std::size_t row, const std::vector<std::optional<std::size_t>>& rows) const {
    return std::none_of(rows.begin(), rows.end(), [&](const std::optional<std::size_t>& other) {
      return other && is_better(*figure(*other), *figure(row)) &&
             (metric_.has(kOnAnyDevices) || figure(*other, "devices") == figure(row, "devices"));
    });
  }
  std::set<double> devices() const {
    std::set<double> numbers;
    for (std::size_t r = 0; r < t_.rows.size(); ++r)
      if (const auto count = figure(r, "devices")) numbers.insert(*count);
    return numbers;
  }
  bool is_beaten(std::size_t row, double value, double bytes) const {
    for (std::size_t r = 0; r < t_.rows.size(); ++r) {
      const auto other = figure(r), memory = figure(r, "peak_memory_bytes");
      if (!other || !memory || figure(r, "devices") != figure(row, "devices")) continue;
      const bool not_worse = (more_ ? *other >= value : *other <= value) && *memory <= bytes;
      if (not_worse && (*other != value || *memory != bytes)) return true;
    }
    return false;
  }
  std::string label_of(std::size_t row) const {
    std::vector<std::string> words;
    for (const VariedPath& a : axes_)
      if (a.value_of[row] >= 0) words.push_back(a.values[a.value_of[row]]);
    return join(words, " \u00b7 ");
  }
  /// What a mark is the best of, and which rows are left out.
  std::string note() const {
    std::vector<std::string> names;
    for (const VariedPath& a : axes_)
      if (x_ && &a != x_ && &a != by_)
        names.push_back(labels_.contains(a.path) ? title_of(a.path) : last_field(a.path));
    std::vector<std::string> sentences;
    if (!names.empty()) sentences.push_back(fmt::format("Best of {}.", join(names)));
    if (const std::string left_out = compared_.sentence(); !left_out.empty()) sentences.push_back(left_out + ".");
    return join(sentences, " ");
  }

  const SweepTable& t_;
  std::map<std::string, std::string> labels_;
  std::vector<VariedPath> axes_;
  ComparableRows compared_;
  const Metric& metric_;
  bool more_;
  const VariedPath *x_ = nullptr, *by_ = nullptr;
};

/// Dark blue to light yellow, lighter all the way, so that it can be read in gray. The page has the same colors.
std::array<int, 3> ramp(double share) {
  constexpr int kStops[5][3] = {{16, 32, 84}, {62, 74, 122}, {116, 116, 124}, {180, 158, 104}, {250, 226, 92}};
  const double at = std::clamp(share, 0.0, 1.0) * 4;
  const auto stop = static_cast<std::size_t>(std::min(std::floor(at), 3.0));
  std::array<int, 3> color{};
  for (std::size_t n = 0; n < 3; ++n)
    color[n] = static_cast<int>(
        std::lround(kStops[stop][n] + (kStops[stop + 1][n] - kStops[stop][n]) * (at - static_cast<double>(stop))));
  return color;
}

/// A cell of a map in the color of `share`, gray without one; its value where that has room.
void add_cell(Picture& picture, const Box& box, std::optional<double> share, const std::string& value, double text,
              bool is_best) {
  const auto [r, g, b] = ramp(share.value_or(0.5));
  const std::string color = share ? fmt::format("#{:02x}{:02x}{:02x}", r, g, b) : "#eef1f4";
  picture.items.push_back(Box{box.left, box.top, box.width - 0.5, box.height - 0.5, color, {}});
  const bool is_dark = share && 0.299 * r + 0.587 * g + 0.114 * b < 120;
  if (text_width(value, text, is_best) < box.width)
    picture.items.push_back(Label{{box.left + box.width / 2, box.top + box.height / 2 + 0.35 * text},
                                  value,
                                  text,
                                  Anchor::Middle,
                                  is_dark ? "#ffffff" : "#000000",
                                  is_best});
}

Picture SweepDrawing::map(const PictureSize& size) const {
  const double text = size.text;
  const std::size_t columns = x_->values.size(), lines = by_->values.size();
  std::vector<std::optional<std::size_t>> cells;
  double low = kInfinity, high = -kInfinity;
  for (std::size_t y = 0; y < lines; ++y)
    for (std::size_t x = 0; x < columns; ++x) {
      cells.push_back(best(static_cast<int>(x), static_cast<int>(y)));
      if (cells.back()) low = std::min(low, *figure(*cells.back())), high = std::max(high, *figure(*cells.back()));
    }
  const ChartUnit unit = chart_unit(metric_, high);
  Picture picture{size.title.value_or(t_.title), size.width, 0, {}};
  double top = add_title(picture, text, 0.5 * text) + 1.6 * text;
  const auto label = [&](double x, double y, const std::string& words, Anchor anchor, const char* color = "#18202a") {
    picture.items.push_back(Label{{x, y}, words, text, anchor, color});
  };
  const std::string best_of = note();
  const std::string caption = fmt::format("{}; down: {}{}{}", figure_title(metric_, unit), title_of(by_->path),
                                          best_of.empty() ? "" : ". ", best_of);
  for (const std::string& line : wrapped_text(caption, text, size.width - 2 * text, kCaptionLines)) {
    label(0.7 * text, top, line, Anchor::Start, "#55606d");
    top += 1.4 * text;
  }
  top -= 0.4 * text;
  double left = 0;
  for (const std::string& name : by_->values) left = std::max(left, text_width(name, text));
  left = std::min(left, 0.35 * size.width) + 2 * text;
  const double width = (size.width - left - text) / static_cast<double>(columns), height = 2.2 * text;
  for (std::size_t y = 0; y < lines; ++y) {
    label(left - 0.6 * text, top + height * (static_cast<double>(y) + 0.5) + 0.35 * text,
          fitted_text(by_->values[y], text, left - 1.4 * text), Anchor::End);
    for (std::size_t x = 0; x < columns; ++x) {
      const std::optional<std::size_t>& cell = cells[y * columns + x];
      std::optional<double> share;
      if (cell) share = high > low ? (*figure(*cell) - low) / (high - low) : 0.5;
      const Box box{
          left + width * static_cast<double>(x), top + height * static_cast<double>(y), width, height, {}, {}};
      add_cell(picture, box, share, cell ? fmt::format("{:.4g}", *figure(*cell) / unit.factor) : "\u2013", text,
               cell && is_best(*cell, cells));
    }
  }
  const double bottom = top + height * static_cast<double>(lines);
  for (std::size_t x = 0; x < columns; ++x)
    label(left + width * (static_cast<double>(x) + 0.5), bottom + 1.3 * text, fitted_text(x_->values[x], text, width),
          Anchor::Middle);
  label(left + width * static_cast<double>(columns) / 2, bottom + 2.8 * text, title_of(x_->path), Anchor::Middle);
  picture.height = bottom + 3.6 * text;
  return picture;
}

}  // namespace

void check_sweep_view(const SweepTable& table, const SweepView& view) { SweepDrawing(table, view); }

Picture sweep_picture(const SweepTable& table, const SweepView& view, const PictureSize& size) {
  const SweepDrawing drawing(table, view);
  if (view.kind == SweepView::Kind::Map) return drawing.map(size);
  return chart_picture(view.kind == SweepView::Kind::Front ? drawing.front() : drawing.lines(), size);
}

}  // namespace stagecraft
