#include "sim/report/drawings.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// "F3" cut to what fits, the rest filled with the letter's mark.
std::string bar(const Instruction& i, int columns) {
  const char mark = letter(i.kind);
  std::string text = fmt::format("{}{}", mark, i.number);
  if (static_cast<int>(text.size()) > columns) text = std::string(1, mark);
  text.resize(columns, i.kind == InstructionKind::Forward ? '-' : '=');
  return text;
}

bool shown(const Program& program, const Instruction& i, int iteration) {
  return i.is_compute() && program.iteration_of(i) == iteration;
}

struct Window {
  double first = 0, last = 0, shortest_op = 0;

  double length() const { return last - first; }
};

/// When the iteration computes; empty when nothing in it takes time.
Window window_of(const Program& program, const Timeline& timeline, int iteration) {
  Window w{timeline.last_end().value, 0, timeline.last_end().value};
  for (const InstructionId n : program.instructions.ids()) {
    if (!shown(program, program.instructions[n], iteration)) continue;
    const double start = timeline.start[n], end = timeline.end[n];
    w.first = std::min(w.first, start);
    w.last = std::max(w.last, end);
    if (end > start) w.shortest_op = std::min(w.shortest_op, end - start);
  }
  return w.length() > 0 ? w : Window{};
}

/// Columns a second. Three for the shortest op when that fits, so that small cases with whole times come out exact.
double scale_of(const Window& w, int width) { return std::min(3 / w.shortest_op, width / w.length()); }

std::string rows_of(const Program& program, const Timeline& timeline, const Cluster& cluster, int iteration,
                    const Window& window, double scale) {
  const auto column = [&](double t) { return static_cast<int>(std::lround((t - window.first) * scale)); };

  std::vector<bool> works(program.devices, false);
  std::vector<std::string> rows(program.devices, std::string(column(window.last), '.'));
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.instructions[n];
    const int from = column(timeline.start[n]), to = column(timeline.end[n]);
    if (!shown(program, i, iteration)) continue;
    works[i.device.value] = true;
    if (to <= from) continue;  // Too short to be seen; its device has a row all the same.
    rows[i.device.value].replace(from, to - from, bar(i, to - from));
  }
  std::size_t widest = 0;
  for (std::size_t d = 0; d < rows.size(); ++d)
    if (works[d]) widest = std::max(widest, cluster.devices[DeviceId{d}].name.size());
  std::string text;
  for (std::size_t d = 0; d < rows.size(); ++d)
    if (works[d]) text += fmt::format("  {:<{}} |{}|\n", cluster.devices[DeviceId{d}].name, widest, rows[d]);
  return text;
}

}  // namespace

std::string gantt(const Program& program, const Timeline& timeline, const Cluster& cluster, int iteration, int width) {
  const Window window = window_of(program, timeline, iteration);
  if (window.length() <= 0) return {};
  return rows_of(program, timeline, cluster, iteration, window, scale_of(window, width));
}

std::string gantt_legend(std::span<const Strip> strips) {
  constexpr std::pair<InstructionKind, const char*> kOps[] = {{InstructionKind::Forward, "forward"},
                                                              {InstructionKind::Backward, "backward"},
                                                              {InstructionKind::InputGradient, "input gradient"},
                                                              {InstructionKind::WeightGradient, "weight gradient"},
                                                              {InstructionKind::Recompute, "recomputation"},
                                                              {InstructionKind::Update, "update"},
                                                              {InstructionKind::Predict, "prediction"}};
  std::string text;
  for (const auto& [kind, meaning] : kOps) {
    const bool occurs = std::any_of(strips.begin(), strips.end(), [k = kind](const Strip& s) {
      return std::any_of(s.program.instructions.begin(), s.program.instructions.end(),
                         [k](const Instruction& i) { return i.kind == k; });
    });
    if (occurs) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", letter(kind), meaning);
  }
  return text.empty() ? text : fmt::format("  {} of the micro-batch with this number; . the device waits\n", text);
}

int gantt_width(const Cluster& cluster, int usual, const TextLayout& layout) {
  constexpr int kBorders = 5, kLeast = 20;  // Two spaces, one before the first bar, and two bars.
  if (layout.width <= 0) return usual;
  std::size_t names = 0;
  for (const Device& d : cluster.devices) names = std::max(names, d.name.size());
  return std::clamp(layout.width - static_cast<int>(names) - kBorders, kLeast, usual);
}

std::string gantt_strips(std::span<const Strip> strips, const Cluster& cluster, int width) {
  double scale = kInfinity;
  std::vector<Window> windows;
  for (const Strip& s : strips) {
    windows.push_back(window_of(s.program, s.timeline, 0));
    if (windows.back().length() > 0) scale = std::min(scale, scale_of(windows.back(), width));
  }
  std::string text;
  for (std::size_t i = 0; i < strips.size(); ++i) {
    text += fmt::format("{}{}\n", i == 0 ? "" : "\n", strips[i].title);
    if (windows[i].length() > 0) text += rows_of(strips[i].program, strips[i].timeline, cluster, 0, windows[i], scale);
  }
  return text;
}

namespace {

constexpr double kLeft = 120, kTop = 44, kRow = 34, kBox = 22, kWidth = 1180, kRight = 20;
constexpr double kStripTitle = 26, kLegend = 130;

// Colors of forward, backward, input gradient, weight gradient, recomputation, update and prediction, which people who
// do not see red and green can distinguish.
constexpr const char* kFill[] = {"#4c78a8", "#f2b447", "#e8913c", "#88bfae", "#b7c9de", "#7d6b91", "#d58fa8"};
constexpr const char* kMeaning[] = {"forward",       "backward", "input gradient", "weight gradient",
                                    "recomputation", "update",   "prediction"};
static_assert(std::size(kMeaning) == std::size(kFill));

template <class... Args>
void add(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  text += '\n';
}

/// Pixels a second.
double scale_of(Seconds longest) { return longest.value > 0 ? (kWidth - kLeft - kRight) / longest.value : 0; }

void begin(std::string& text, double height, const std::string& title) {
  add(text, R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">)",
      kWidth, height);
  add(text, R"(<rect width="{}" height="{}" fill="white"/><text x="12" y="20" font-size="15">{}</text>)", kWidth,
      height, xml_escape(title));
}

void axis(std::string& text, double y, Seconds longest) {
  for (int tick = 0; tick <= 8; ++tick) {
    const double at = longest.value * tick / 8;
    add(text, R"(<text x="{:.2f}" y="{}" text-anchor="{}" fill="#555">{}</text>)", kLeft + at * scale_of(longest), y,
        tick == 8 ? "end" : "middle", to_text(Seconds{at}));
  }
}

/// One timeline, its first row at `top`.
class Drawing {
 public:
  /// Draws one iteration, or all of them without `iteration`.
  Drawing(const Program& program, const Timeline& timeline, std::optional<int> iteration)
      : p_(program), t_(timeline), iteration_(iteration) {
    row_.assign(p_.devices, -1);
    std::vector<bool> used(row_.size(), false);
    for (std::size_t n = 0; n < p_.size(); ++n) {
      const Instruction& i = p_.at(InstructionId{n});
      if (!i.is_compute() || !shown(i)) continue;
      used[i.device.value] = true;
      length_ = std::max(length_, t_.end[InstructionId{n}]);
    }
    if (!iteration_) length_ = t_.last_end().value;
    for (std::size_t d = 0; d < used.size(); ++d)
      if (used[d]) row_[d] = rows_++;
  }

  Seconds length() const { return {length_}; }
  double height() const { return kRow * rows_; }

  void draw(std::string& text, const Cluster& cluster, double top, double scale) const {
    Pen pen{text, top, scale};
    for (std::size_t d = 0; d < row_.size(); ++d) {
      if (row_[d] < 0) continue;
      add(text, R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, y(pen, d) + 15,
          xml_escape(cluster.devices[DeviceId{d}].name));
      add(text, R"(<rect x="{}" y="{}" width="{:.6g}" height="{}" fill="#f1f1f1"/>)", kLeft, y(pen, d), length_ * scale,
          kBox);
    }
    for (const InstructionId n : p_.instructions.ids()) {
      if (!shown(p_.at(n))) continue;
      if (p_.at(n).is_compute())
        box(pen, n);
      else
        message(pen, n);
    }
  }

 private:
  struct Pen {
    std::string& text;
    double top, scale;

    double x(double seconds) const { return kLeft + seconds * scale; }
  };

  bool shown(const Instruction& i) const { return !iteration_ || p_.iteration_of(i) == *iteration_; }
  double y(const Pen& pen, std::size_t d) const { return pen.top + kRow * row_[d]; }

  void box(const Pen& pen, InstructionId n) const {
    const Instruction& i = p_.at(n);
    const double from = pen.x(t_.start[n]), width = pen.x(t_.end[n]) - from;
    const double top = y(pen, i.device.value);
    if (width <= 0) return;
    add(pen.text,
        R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="{}" fill="{}" stroke="white" stroke-width="0.6"><title>{}</title></rect>)",
        from, top, width, kBox, kFill[static_cast<int>(i.kind)], to_text(p_, n));
    const bool numbered = i.kind != InstructionKind::Update && i.kind != InstructionKind::Predict;
    const std::string label = numbered ? std::to_string(i.number) : std::string(1, letter(i.kind));
    if (width > 7.0 * static_cast<double>(label.size()))
      add(pen.text, R"(<text x="{:.2f}" y="{}" text-anchor="middle" font-size="11" fill="{}">{}</text>)",
          from + width / 2, top + 15,
          i.kind == InstructionKind::Forward || i.kind == InstructionKind::Update ? "white" : "black", label);
  }

  void message(const Pen& pen, InstructionId n) const {
    const Instruction& i = p_.at(n);
    if (i.kind != InstructionKind::Send) return;
    const double top = y(pen, i.device.value) + kBox + 3;
    const bool gradient = p_.moves_gradient(i);
    add(pen.text, R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="3" fill="{}"><title>{}</title></rect>)",
        pen.x(t_.start[n]), top + (gradient ? 4 : 0), std::max(0.5, pen.x(t_.end[n]) - pen.x(t_.start[n])),
        kFill[gradient], to_text(p_, n));
  }

  const Program& p_;
  const Timeline& t_;
  std::optional<int> iteration_;
  std::vector<int> row_;  ///< Row of each device; -1 where nothing runs on it.
  int rows_ = 0;
  double length_ = 0;
};

/// The legend: what the colors of the boxes that are drawn mean.
void legend(std::string& text, std::span<const Strip> strips, double top) {
  bool there[std::size(kFill)] = {};
  for (const Strip& s : strips)
    for (const Instruction& i : s.program.instructions)
      if (i.is_compute()) there[static_cast<int>(i.kind)] = true;
  double x = kLeft;
  for (std::size_t kind = 0; kind < std::size(kFill); ++kind) {
    if (!there[kind]) continue;
    add(text, R"(<rect x="{}" y="{}" width="14" height="12" fill="{}"/><text x="{}" y="{}">{}</text>)", x, top,
        kFill[kind], x + 20, top + 11, kMeaning[kind]);
    x += kLegend;
  }
}

}  // namespace

std::string timeline_svg(const Program& program, const Timeline& timeline, const Cluster& cluster,
                         const std::string& title) {
  const Drawing drawing(program, timeline, {});
  const double height = kTop + drawing.height() + 34;
  std::string text;
  begin(text, height, title);
  drawing.draw(text, cluster, kTop, scale_of(drawing.length()));
  axis(text, height - 12, drawing.length());
  return text + "</svg>\n";
}

std::string strips_svg(std::span<const Strip> strips, const Cluster& cluster, const std::string& title) {
  std::vector<Drawing> drawings;
  Seconds longest;
  double height = kTop + kStripTitle;
  for (const Strip& s : strips) {
    const Drawing& drawing = drawings.emplace_back(s.program, s.timeline, 0);
    longest = std::max(longest, drawing.length());
    height += kStripTitle + drawing.height();
  }
  std::string text;
  begin(text, height + 34, title);
  legend(text, strips, kTop - 10);
  double top = kTop + kStripTitle;
  for (std::size_t i = 0; i < strips.size(); ++i) {
    add(text, R"(<text x="{}" y="{}" font-weight="bold">{}</text>)", kLeft, top + kStripTitle - 8,
        xml_escape(strips[i].title));
    drawings[i].draw(text, cluster, top + kStripTitle, scale_of(longest));
    top += kStripTitle + drawings[i].height();
  }
  axis(text, height + 22, longest);
  return text + "</svg>\n";
}

}  // namespace stagecraft
