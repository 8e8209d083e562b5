// The chart of `run --draw memory`: memory of each device over time, with one line for devices whose curves are equal.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/output/chart.hpp"
#include "sim/output/timeline_picture.hpp"
#include "sim/result/memory.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostLines = 8;

/// Devices with the same memory at the same times.
struct MemoryLine {
  std::vector<DeviceId> devices;
  std::vector<PicturePoint> points;  ///< Seconds and bytes.
  double peak = 0;
};

std::vector<MemoryLine> memory_lines(const Program& program, const Timeline& timeline, const Report& report) {
  const MemoryHistory history(program, timeline);
  std::map<std::vector<std::pair<double, double>>, std::size_t> line_of;
  std::vector<MemoryLine> lines;
  for (const DeviceId d : report.devices.ids()) {
    if (!report.devices[d].used) continue;
    const double resident = program.memory[d].total().value;
    std::vector<std::pair<double, double>> points{{0, resident}};
    for (const MemorySample& s : history.curve(d)) points.emplace_back(s.time, resident + s.total().value);
    points.emplace_back(report.length.value, points.back().second);
    const auto [at, fresh] = line_of.try_emplace(points, lines.size());
    if (fresh) {
      MemoryLine& line = lines.emplace_back();
      for (const auto& [time, bytes] : points) {
        line.points.push_back({time, bytes});
        line.peak = std::max(line.peak, bytes);
      }
    }
    lines[at->second].devices.push_back(d);
  }
  return lines;
}

}  // namespace

Picture memory_picture(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster,
                       const std::string& title, const PictureSize& size) {
  std::vector<MemoryLine> lines = memory_lines(program, timeline, report);
  const std::size_t total = lines.size();
  if (total > kMostLines) {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const MemoryLine& a, const MemoryLine& b) { return a.peak > b.peak; });
    lines.resize(kMostLines);
    std::sort(lines.begin(), lines.end(),
              [](const MemoryLine& a, const MemoryLine& b) { return a.devices.front() < b.devices.front(); });
  }
  double capacity = 0, peak = 0;
  for (const MemoryLine& line : lines) {
    peak = std::max(peak, line.peak);
    const MemoryPeak& m = report.devices[line.devices.front()].memory;
    capacity = std::max(capacity, m.capacity.value);
  }
  const ChartUnit time = time_unit(report.length.value), bytes = size_unit(std::max(peak, 1.0));
  Chart chart{.title = title,
              .x = {fmt::format("time, {}", time.name)},
              .y = {fmt::format("memory, {}", bytes.name)},
              .series = {}};
  for (MemoryLine& line : lines) {
    const std::string& name = cluster.devices[line.devices.front()].name;
    ChartSeries series{
        line.devices.size() > 1 ? fmt::format("{} \u00d7{}", name, line.devices.size()) : name, SeriesStyle::Steps, {}};
    for (const PicturePoint& p : line.points) series.points.push_back({p.x / time.factor, p.y / bytes.factor});
    chart.series.push_back(std::move(series));
  }
  // The line of the capacity would press the curves flat where little of it is used.
  if (capacity > 0 && peak > capacity / 2) {
    chart.limit = capacity / bytes.factor;
    chart.limit_text = fmt::format("usable: {}", to_text(Bytes{capacity}));
  } else if (capacity > 0) {
    chart.note = fmt::format("A device may use {}.", to_text(Bytes{capacity}));
  }
  if (total > kMostLines)
    chart.note +=
        fmt::format("{}The {} of {} curves with the highest peaks.", chart.note.empty() ? "" : " ", kMostLines, total);
  return chart_picture(chart, size);
}

}  // namespace stagecraft
