#include "sim/report/text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::size_t kMostDevices = 16;

std::string row(std::string_view name, const std::string& value, const std::string& note = {}) {
  return fmt::format("  {:<22} {:>12}{}{}\n", name, value, note.empty() ? "" : "   ", note);
}

/// Rounding must not show as a sign.
std::string percent(double share) { return fmt::format("{:.1f} %", std::abs(share) < 5e-4 ? 0.0 : 100 * share); }

std::string of_capacity(const MemoryPeak& m) {
  return m.capacity.value > 0 ? fmt::format("{} of {}", to_text(m.total), to_text(m.capacity)) : to_text(m.total);
}

std::string device_table(const Report& report, const Cluster& cluster) {
  std::size_t width = 6;
  std::vector<std::size_t> used;
  for (std::size_t d = 0; d < report.devices.size(); ++d)
    if (report.devices[d].used) used.push_back(d);
  const std::size_t left_out = used.size() > kMostDevices ? used.size() - kMostDevices : 0;
  used.resize(used.size() - left_out);
  for (const std::size_t d : used) width = std::max(width, cluster.devices[d].name.size());
  std::string text = fmt::format("  {:<{}}  {:>7}  {:>16}  {:>24}  {:>11}\n", "device", width, "busy", "waits for link",
                                 "peak memory", "activations");
  for (const std::size_t d : used) {
    const DeviceReport& r = report.devices[d];
    text += fmt::format("  {:<{}}  {:>7}  {:>16}  {:>24}  {:>11}\n", cluster.devices[d].name, width,
                        percent(r.utilisation), to_text(r.exposed), of_capacity(r.memory), r.memory.activations);
  }
  if (left_out > 0) text += fmt::format("  ... and {} more\n", left_out);
  return text;
}

std::string critical_path_text(const Report& report) {
  if (report.length.value <= 0) return {};
  const auto share = [&](Seconds s) { return percent(s / report.length); };
  return row("critical path", fmt::format("{} ops", report.critical_path.size()),
             fmt::format("compute {}, transfers {}, waiting {}", share(report.critical_compute),
                         share(report.critical_transfer), share(report.critical_wait)));
}

}  // namespace

std::string summary_text(const Program& program, const Report& report, const Cluster& cluster, bool measured) {
  const auto fullest =
      std::max_element(report.devices.begin(), report.devices.end(),
                       [](const DeviceReport& a, const DeviceReport& b) { return a.memory.total < b.memory.total; });
  std::string text;
  text += row("one iteration", to_text(report.makespan),
              report.drains ? "fill and drain included" : "the first; the next is already under way");
  if (program.iterations > 1) text += row("period", to_text(report.period), "one more iteration, back to back");
  text += row("throughput", fmt::format("{:.4g}/s", report.throughput),
              fmt::format("samples; {} in an iteration", program.mini_batch));
  text += row("bubble", percent(report.bubble),
              fmt::format("of an iteration; {} of the period on the busiest device", percent(report.steady_bubble)));
  if (fullest != report.devices.end()) {
    const auto d = static_cast<std::size_t>(fullest - report.devices.begin());
    const MemoryPeak& m = fullest->memory;
    text +=
        row(measured ? "memory, as planned" : "peak memory", to_text(m.total),
            fmt::format("on {}{}{}", cluster.devices[d].name, m.capacity.value > 0 ? " of " + to_text(m.capacity) : "",
                        m.at.valid() ? " at " + to_text(program, m.at) : ""));
  }
  if (!report.links.empty()) {
    const LinkReport& l = report.links.front();
    text += row(measured ? "busiest link, planned" : "busiest link", percent(l.utilisation),
                fmt::format("{}, {} in all", cluster.links[static_cast<std::size_t>(l.link)].name, to_text(l.traffic)));
  }
  if (report.energy.value > 0)
    text += row("energy", to_text(report.energy), fmt::format("in {}", to_text(report.length)));
  text += critical_path_text(report) + "\n" + device_table(report, cluster);
  for (std::size_t d = 0; d < report.devices.size(); ++d) {
    const MemoryPeak& m = report.devices[d].memory;
    if (m.capacity.value > 0 && m.total > m.capacity)
      text += fmt::format("warning: {} would need {} more memory with the messages that are on their way\n",
                          cluster.devices[d].name, to_text(m.total - m.capacity));
  }
  return text;
}

}  // namespace stagecraft
