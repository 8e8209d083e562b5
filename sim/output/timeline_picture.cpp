// Draws timeline strips as a Picture: a row for each device with its ops, messages as thin lines below them, and a time
// axis; `run` and `compare` draw it.

#include "sim/output/timeline_picture.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/chart.hpp"

namespace stagecraft {
namespace {

constexpr const char* kIdleFill = "#eef1f4";

class TimelineDrawing {
 public:
  TimelineDrawing(const std::string& title, const PictureSize& size) : text_(size.text) {
    picture_.title = size.title.value_or(title);
    picture_.width = size.width;
  }

  Picture draw(std::span<const TimelineStrip> strips) {
    double top = 0.5 * text_, names = 0, longest = 0;
    for (const TimelineStrip& s : strips) {
      longest = std::max(longest, s.length);
      for (const TimelineRow& row : s.rows) names = std::max(names, text_width(name_of(row), text_));
    }
    left_ = std::min(names, 0.3 * picture_.width) + 1.4 * text_;
    width_ = picture_.width - left_ - text_;
    scale_ = longest > 0 ? width_ / longest : 0;
    top = add_title(picture_, text_, top);
    top = legend(strips, top + 0.7 * text_) + 0.7 * text_;
    for (const TimelineStrip& s : strips) {
      if (!s.title.empty()) {
        top += 1.4 * text_;
        put(Label{{left_, top}, fitted_text(s.title, text_, width_, true), text_, Anchor::Start, kInk, true});
        top += 0.5 * text_;
      }
      for (const TimelineRow& r : s.rows) {
        row(r, s.length, top);
        top += row_height();
      }
    }
    axis(top, longest);
    picture_.height = top + 2.6 * text_;
    return std::move(picture_);
  }

 private:
  static constexpr const char* kInk = "#18202a";
  static constexpr const char* kDim = "#55606d";

  void put(PictureItem item) { picture_.items.push_back(std::move(item)); }
  double row_height() const { return 2.5 * text_; }
  double box_height() const { return 1.7 * text_; }
  double x(double seconds) const { return left_ + seconds * scale_; }
  static std::string name_of(const TimelineRow& row) {
    return row.count > 1 ? fmt::format("{} \u00d7{}", row.device, row.count) : row.device;
  }

  /// What the colors of the boxes that are drawn mean.
  double legend(std::span<const TimelineStrip> strips, double top) {
    EnumArray<InstructionKind, bool, kInstructionKindCount> used{};
    for (const TimelineStrip& s : strips)
      for (const TimelineRow& r : s.rows)
        for (const TimelineSpan& span : r.spans) used[span.kind] |= !span.is_message;
    std::vector<LegendEntry> entries;
    for (InstructionKind kind{}; kind < InstructionKind::Send; kind = next_kind(kind))
      if (used[kind]) entries.push_back({std::string(label(kind).meaning), std::string(label(kind).color)});
    return add_legend(picture_, entries, left_ - 0.6 * text_, left_ + width_, top, text_);
  }

  void row(const TimelineRow& r, double length, double top) {
    put(Label{{left_ - 0.6 * text_, top + 1.2 * text_},
              fitted_text(name_of(r), text_, left_ - 1.2 * text_),
              text_,
              Anchor::End,
              kInk});
    put(Box{left_, top, length * scale_, box_height(), kIdleFill, {}});
    for (const TimelineSpan& span : r.spans) span.is_message ? message(span, top) : op(span, top);
  }

  void op(const TimelineSpan& span, double top) {
    const double from = x(span.start), width = x(span.end) - from;
    if (width <= 0) return;
    const WorkLabel& work = label(span.kind);
    // A hair of space between ops, as long as they are wider than it.
    const double gap = std::min(0.4, width / 4);
    put(Box{from, top, width - gap, box_height(), std::string(work.color), span.text});
    const bool numbered = span.kind != InstructionKind::Update && span.kind != InstructionKind::Predict;
    const std::string text = numbered ? std::to_string(span.micro_batch) : std::string(1, work.letter);
    const double size = 0.92 * text_;
    if (width > text_width(text, size) + 0.25 * text_)
      put(Label{
          {from + width / 2, top + 1.15 * text_}, text, size, Anchor::Middle, work.is_dark ? "#ffffff" : "#000000"});
  }

  void message(const TimelineSpan& span, double top) {
    const bool gradient = span.kind == InstructionKind::Backward;
    const double from = x(span.start), line = 0.22 * text_;
    put(Box{from, top + box_height() + line + (gradient ? 1.3 * line : 0), std::max(0.3, x(span.end) - from), line,
            std::string(label(span.kind).color), span.text});
  }

  void axis(double top, double longest) {
    const ChartUnit unit = time_unit(longest);
    put(Polyline{{{left_, top}, {left_ + width_, top}}, kDim, 0.6});
    const std::vector<double> ticks =
        round_ticks(0, longest / unit.factor, std::max(2, static_cast<int>(width_ / (5 * text_))));
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
    for (const double tick : ticks) {
      const double at = x(tick * unit.factor);
      const std::string text = fmt::format("{} {}", tick_text(tick, step), unit.name);
      put(Polyline{{{at, top}, {at, top + 0.35 * text_}}, kDim, 0.5});
      const bool fits = at + text_width(text, text_) / 2 < picture_.width;
      put(Label{{fits ? at : picture_.width - 0.2 * text_, top + 1.5 * text_},
                text,
                text_,
                fits ? Anchor::Middle : Anchor::End,
                kDim});
    }
  }

  double text_, left_ = 0, width_ = 0, scale_ = 0;
  Picture picture_;
};

}  // namespace

Picture timeline_picture(const Program& program, const Timeline& timeline, const Cluster& cluster,
                         const std::string& title, const PictureSize& size, std::optional<int> iteration) {
  const TimelineStrip strip = timeline_strip(program, timeline, cluster, {}, iteration);
  return strips_picture(std::span(&strip, 1), title, size);
}

Picture strips_picture(std::span<const TimelineStrip> strips, const std::string& title, const PictureSize& size) {
  return TimelineDrawing(title, size).draw(strips);
}

Picture strips_picture(std::span<const Strip> strips, const Cluster& cluster, const std::string& title,
                       const PictureSize& size) {
  std::vector<TimelineStrip> drawn;
  for (const Strip& s : strips) drawn.push_back(timeline_strip(s.program, s.timeline, cluster, s.title, 0));
  return strips_picture(drawn, title, size);
}

}  // namespace stagecraft
