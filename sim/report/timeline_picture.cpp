#include "sim/report/timeline_picture.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/report/chart.hpp"

namespace stagecraft {
namespace {

// Colors of forward, backward, input gradient, weight gradient, recomputation, update and prediction, as on the pages:
// people who do not see red and green can distinguish them.
constexpr const char* kFill[] = {"#3a78bd", "#e8a23a", "#e8a23a", "#786d94", "#5ac7fb", "#3b4552", "#bf83a4"};
constexpr const char* kMeaning[] = {"forward",       "backward", "input gradient", "weight gradient",
                                    "recomputation", "update",   "prediction"};
static_assert(std::size(kMeaning) == std::size(kFill));
constexpr const char* kIdleFill = "#eef1f4";

bool is_dark(InstructionKind kind) {
  return kind == InstructionKind::Forward || kind == InstructionKind::Update || kind == InstructionKind::WeightGradient;
}

/// A device that stands for `count` devices with the same ops at the same times.
struct DeviceRow {
  DeviceId device;
  int count = 1;
};

/// The instructions of a timeline that are drawn, and its rows.
class DrawnLanes {
 public:
  DrawnLanes(const Program& program, const Timeline& timeline, std::optional<int> iteration)
      : p_(program), t_(timeline), iteration_(iteration), row_of_(program.devices, -1) {
    IdVector<DeviceId, std::vector<InstructionId>> ops(p_.devices);
    for (const InstructionId n : p_.instructions.ids()) {
      if (!p_.at(n).is_compute() || !shows(n)) continue;
      ops[p_.at(n).device].push_back(n);
      length_ = std::max(length_, t_.end[n]);
    }
    if (!iteration_) length_ = t_.last_end().value;
    std::map<Signature, std::size_t> rows;
    for (const DeviceId d : ops.ids()) {
      if (ops[d].empty()) continue;
      const auto [at, fresh] = rows.try_emplace(signature(ops[d]), rows_.size());
      if (fresh) {
        row_of_[d] = static_cast<int>(rows_.size());
        rows_.push_back({d});
      } else {
        ++rows_[at->second].count;
      }
    }
  }

  const std::vector<DeviceRow>& rows() const { return rows_; }
  double length() const { return length_; }
  bool shows(InstructionId n) const { return !iteration_ || p_.iteration_of(p_.at(n)) == *iteration_; }
  /// The row in which a device is drawn; -1 where another device stands for it.
  int row_of(DeviceId d) const { return row_of_[d]; }
  const Program& program() const { return p_; }
  const Timeline& timeline() const { return t_; }

 private:
  /// Kind, stage, micro-batch, start and end of each op, times in millionths of the whole.
  using Signature = std::vector<std::tuple<int, std::size_t, int, long, long>>;
  Signature signature(const std::vector<InstructionId>& ops) const {
    const auto part = [&](double time) { return length_ > 0 ? std::lround(1e6 * time / length_) : 0; };
    Signature list;
    for (const InstructionId n : ops) {
      const Instruction& i = p_.at(n);
      list.emplace_back(static_cast<int>(i.kind), i.stage.value, i.number, part(t_.start[n]), part(t_.end[n]));
    }
    return list;
  }

  const Program& p_;
  const Timeline& t_;
  std::optional<int> iteration_;
  double length_ = 0;
  std::vector<DeviceRow> rows_;
  IdVector<DeviceId, int> row_of_;
};

class TimelineDrawing {
 public:
  TimelineDrawing(const Cluster& cluster, const std::string& title, const PictureSize& size)
      : cluster_(cluster), text_(size.text) {
    picture_.title = title;
    picture_.width = size.width;
  }

  Picture draw(const std::vector<std::pair<std::string, DrawnLanes>>& strips) {
    double top = 0.5 * text_, names = 0, longest = 0;
    for (const auto& [name, lanes] : strips) {
      longest = std::max(longest, lanes.length());
      for (const DeviceRow& row : lanes.rows()) names = std::max(names, text_width(name_of(row), text_));
    }
    left_ = std::min(names, 0.3 * picture_.width) + 1.4 * text_;
    width_ = picture_.width - left_ - text_;
    scale_ = longest > 0 ? width_ / longest : 0;
    if (!picture_.title.empty()) {
      top += 1.3 * text_;
      put(Label{{0.7 * text_, top},
                fitted_text(picture_.title, 1.15 * text_, picture_.width - 1.5 * text_, true),
                1.15 * text_,
                Anchor::Start,
                kInk,
                true});
    }
    top = legend(strips, top + 0.7 * text_) + 0.7 * text_;
    for (const auto& [name, lanes] : strips) {
      if (!name.empty()) {
        top += 1.4 * text_;
        put(Label{{left_, top}, fitted_text(name, text_, width_, true), text_, Anchor::Start, kInk, true});
        top += 0.5 * text_;
      }
      strip(lanes, top);
      top += row_height() * static_cast<double>(lanes.rows().size());
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
  std::string name_of(const DeviceRow& row) const {
    const std::string& name = cluster_.devices[row.device].name;
    return row.count > 1 ? fmt::format("{} \u00d7{}", name, row.count) : name;
  }

  /// What the colors of the boxes that are drawn mean.
  double legend(const std::vector<std::pair<std::string, DrawnLanes>>& strips, double top) {
    bool used[std::size(kFill)] = {};
    for (const auto& [name, lanes] : strips)
      for (const Instruction& i : lanes.program().instructions)
        if (i.is_compute()) used[static_cast<int>(i.kind)] = true;
    std::vector<LegendEntry> entries;
    for (std::size_t kind = 0; kind < std::size(kFill); ++kind)
      if (used[kind]) entries.push_back({kMeaning[kind], kFill[kind]});
    return add_legend(picture_, entries, left_ - 0.6 * text_, left_ + width_, top, text_);
  }

  void strip(const DrawnLanes& lanes, double top) {
    for (std::size_t r = 0; r < lanes.rows().size(); ++r) {
      const double y = top + row_height() * static_cast<double>(r);
      put(Label{{left_ - 0.6 * text_, y + 1.2 * text_},
                fitted_text(name_of(lanes.rows()[r]), text_, left_ - 1.2 * text_),
                text_,
                Anchor::End,
                kInk});
      put(Box{left_, y, lanes.length() * scale_, box_height(), kIdleFill, {}});
    }
    for (const InstructionId n : lanes.program().instructions.ids()) {
      const int row = lanes.row_of(lanes.program().at(n).device);
      if (row < 0 || !lanes.shows(n)) continue;
      if (lanes.program().at(n).is_compute())
        op(lanes, n, top + row_height() * row);
      else
        message(lanes, n, top + row_height() * row);
    }
  }

  void op(const DrawnLanes& lanes, InstructionId n, double top) {
    const Instruction& i = lanes.program().at(n);
    const double from = x(lanes.timeline().start[n]), width = x(lanes.timeline().end[n]) - from;
    if (width <= 0) return;
    // A hair of space between ops, as long as they are wider than it.
    const double gap = std::min(0.4, width / 4);
    put(Box{from, top, width - gap, box_height(), kFill[static_cast<int>(i.kind)], to_text(lanes.program(), n)});
    const bool numbered = i.kind != InstructionKind::Update && i.kind != InstructionKind::Predict;
    const std::string label = numbered ? std::to_string(i.number) : std::string(1, letter(i.kind));
    const double size = 0.92 * text_;
    if (width > text_width(label, size) + 0.25 * text_)
      put(Label{{from + width / 2, top + 1.15 * text_},
                label,
                size,
                Anchor::Middle,
                is_dark(i.kind) ? "#ffffff" : "#000000"});
  }

  void message(const DrawnLanes& lanes, InstructionId n, double top) {
    const Instruction& i = lanes.program().at(n);
    if (i.kind != InstructionKind::Send) return;
    const bool gradient = lanes.program().moves_gradient(i);
    const double from = x(lanes.timeline().start[n]), line = 0.22 * text_;
    put(Box{from, top + box_height() + line + (gradient ? 1.3 * line : 0),
            std::max(0.3, x(lanes.timeline().end[n]) - from), line, kFill[gradient], to_text(lanes.program(), n)});
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

  const Cluster& cluster_;
  double text_, left_ = 0, width_ = 0, scale_ = 0;
  Picture picture_;
};

}  // namespace

Picture timeline_picture(const Program& program, const Timeline& timeline, const Cluster& cluster,
                         const std::string& title, const PictureSize& size, std::optional<int> iteration) {
  std::vector<std::pair<std::string, DrawnLanes>> strips;
  strips.emplace_back("", DrawnLanes(program, timeline, iteration));
  return TimelineDrawing(cluster, title, size).draw(strips);
}

Picture strips_picture(std::span<const Strip> strips, const Cluster& cluster, const std::string& title,
                       const PictureSize& size) {
  std::vector<std::pair<std::string, DrawnLanes>> drawn;
  for (const Strip& s : strips) drawn.emplace_back(s.title, DrawnLanes(s.program, s.timeline, 0));
  return TimelineDrawing(cluster, title, size).draw(drawn);
}

}  // namespace stagecraft
