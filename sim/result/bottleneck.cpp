// What holds a run up, in a few words for the column `bottleneck` of `compare --schedules`, from its report alone.

#include "sim/result/bottleneck.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace stagecraft {

std::string bottleneck_text(const Report& report, const Cluster& cluster) {
  constexpr double kMuch = 0.9;
  if (1 - report.steady_bubble >= kMuch) {
    const auto busiest =
        std::max_element(report.devices.begin(), report.devices.end(),
                         [](const DeviceReport& a, const DeviceReport& b) { return a.utilisation < b.utilisation; });
    return fmt::format("the work of {}", cluster.devices[DeviceId{busiest - report.devices.begin()}].name);
  }
  if (!report.links.empty() && report.links.front().utilisation >= kMuch)
    return fmt::format("the link {}", cluster.links[report.links.front().link].name);
  if (report.critical_transfer.value > report.critical_compute.value) return "messages one after the other";
  return "waiting for each other";
}

}  // namespace stagecraft
