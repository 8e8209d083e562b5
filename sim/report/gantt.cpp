#include "sim/report/gantt.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// "F3" cut to what fits, the rest filled with the letter's mark.
std::string bar(const Instruction& i, int columns) {
  const char mark = letter(i.kind);
  std::string text = fmt::format("{}{}", mark, i.micro);
  if (static_cast<int>(text.size()) > columns) text = std::string(1, mark);
  text.resize(static_cast<std::size_t>(columns), i.kind == InstructionKind::Forward ? '-' : '=');
  return text;
}

}  // namespace

std::string gantt(const Program& program, const Timeline& timeline, const Cluster& cluster, int iteration, int width) {
  double first = timeline.last_end().value, last = 0;
  const auto shown = [&](const Instruction& i) { return i.is_compute() && program.iteration_of(i) == iteration; };
  for (std::size_t n = 0; n < program.size(); ++n) {
    if (!shown(program.instructions[n])) continue;
    first = std::min(first, timeline.start[n]);
    last = std::max(last, timeline.end[n]);
  }
  if (last <= first) return {};
  // Three columns for the shortest op when that fits, so that small cases with whole times come out exact.
  double shortest_op = last - first;
  for (std::size_t n = 0; n < program.size(); ++n)
    if (const double t = timeline.end[n] - timeline.start[n]; shown(program.instructions[n]) && t > 0)
      shortest_op = std::min(shortest_op, t);
  double scale = 3 / shortest_op;
  if ((last - first) * scale > width) scale = width / (last - first);
  const auto column = [&](double t) { return static_cast<int>(std::lround((t - first) * scale)); };

  std::vector<bool> works(static_cast<std::size_t>(program.devices), false);
  std::vector<std::string> rows(static_cast<std::size_t>(program.devices),
                                std::string(static_cast<std::size_t>(column(last)), '.'));
  for (std::size_t n = 0; n < program.size(); ++n) {
    const Instruction& i = program.instructions[n];
    const int from = column(timeline.start[n]), to = column(timeline.end[n]);
    if (!shown(i) || to <= from) continue;
    works[static_cast<std::size_t>(i.device)] = true;
    rows[static_cast<std::size_t>(i.device)].replace(static_cast<std::size_t>(from),
                                                     static_cast<std::size_t>(to - from), bar(i, to - from));
  }
  std::size_t widest = 0;
  for (std::size_t d = 0; d < rows.size(); ++d)
    if (works[d]) widest = std::max(widest, cluster.devices[d].name.size());
  std::string text;
  for (std::size_t d = 0; d < rows.size(); ++d)
    if (works[d]) text += fmt::format("  {:<{}} |{}|\n", cluster.devices[d].name, widest, rows[d]);
  return text;
}

}  // namespace stagecraft
