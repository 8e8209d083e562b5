// Draws timelines in characters for the terminal, with their legend: `run`, `schedule --format gantt` and `compare
// --gantt`.

#include "sim/output/drawings.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"

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
  std::string text;
  for (InstructionKind kind{}; kind < InstructionKind::Send; kind = next_kind(kind)) {
    const bool occurs = std::any_of(strips.begin(), strips.end(), [&](const Strip& s) {
      return std::any_of(s.program.instructions.begin(), s.program.instructions.end(),
                         [&](const Instruction& i) { return i.kind == kind; });
    });
    if (occurs) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", letter(kind), label(kind).meaning);
  }
  if (text.empty()) return text;
  return fmt::format("  {}\n  with the number of its micro-batch; . the device waits\n", text);
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

}  // namespace stagecraft
