#include "sim/experiment/magnitudes.hpp"

#include <fmt/format.h>

#include "sim/core/counted.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

/// Between the least and the most that machines have which train or serve networks, with some room. Zero leaves a
/// figure out, and so does `endless` and more.
template <class Thing, class Unit>
struct Range {
  const char* field;
  Unit Thing::*figure;
  Unit least, most;
  Unit endless = {kInfinity};
};

constexpr Bandwidth kEndless{1e18};  // Said of what is to take no time; platforms of SimGrid get it.

// Least: a microcontroller (Arm Cortex-M7, 2014: some hundred MFLOP/s, megabytes); a modem of 56 kbit/s.
// Most: a wafer-scale engine (Cerebras WSE-3, 2024: 125 PFLOP/s, 21 PB/s, 23 kW a system), a server of 64 TB, a switch
// of 115 Tbit/s, a satellite's way of 0.6 s; a kernel's launch is some microseconds.
constexpr Range<DeviceType, FlopRate> kPeaks[] = {{"peak", &DeviceType::peak, {1e8}, {2e17}}};
constexpr Range<DeviceType, Bytes> kMemories[] = {{"memory", &DeviceType::memory, {1e6}, {6.4e13}}};
constexpr Range<DeviceType, Bandwidth> kMemoryBandwidths[] = {
    {"memory_bandwidth", &DeviceType::memory_bandwidth, {1e8}, {3e16}, kEndless}};
constexpr Range<DeviceType, Seconds> kLaunches[] = {{"launch", &DeviceType::launch, {0}, {1e-3}}};
constexpr Range<DeviceType, Watts> kPowers[] = {{"idle", &DeviceType::idle, {1e-3}, {3e4}},
                                                {"busy", &DeviceType::busy, {1e-3}, {3e4}}};
constexpr Range<Link, Bandwidth> kBandwidths[] = {{"bandwidth", &Link::bandwidth, {7e3}, {1e14}, kEndless}};
constexpr Range<Link, Seconds> kLatencies[] = {{"latency", &Link::latency, {0}, {2}}};

/// The first of `things` that is out of the range, and how many more are.
template <class Thing, class Ranges>
void add(const char* what, const std::vector<Thing>& things, const Ranges& ranges, std::vector<std::string>& lines) {
  for (const auto& range : ranges) {
    const Thing* first = nullptr;
    std::int64_t count = 0;
    for (const Thing& thing : things) {
      const auto value = thing.*range.figure;
      const bool plausible = value >= range.least && value <= range.most;
      if (value.value == 0 || value >= range.endless || plausible) continue;
      if (count++ == 0) first = &thing;
    }
    if (!first) continue;
    const bool low = first->*range.figure < range.least;
    lines.push_back(fmt::format("{} '{}'{}: {} of {} is {} than machines have ({}); is that meant?", what, first->name,
                                count > 1 ? fmt::format(" and {} more", count - 1) : "", range.field,
                                to_text(first->*range.figure), low ? "less" : "more",
                                to_text(low ? range.least : range.most)));
  }
}

/// Of those that are known the fastest have 85 us of their peak in memory, a B200 and an H100; a small device has more.
void add_little_memory(const std::vector<DeviceType>& types, std::vector<std::string>& lines) {
  constexpr Seconds kLeast{1e-6};
  for (const DeviceType& t : types)
    if (t.memory.value > 0 && t.peak <= kPeaks[0].most && t.memory.value < kLeast.value * t.peak.value)
      lines.push_back(fmt::format("device type '{}': memory of {} is far less than devices of {} have; is that meant?",
                                  t.name, to_text(t.memory), to_text(t.peak)));
}

}  // namespace

std::vector<std::string> odd_magnitudes(const Cluster& cluster) {
  std::vector<std::string> lines;
  add("device type", cluster.types, kPeaks, lines);
  add("device type", cluster.types, kMemories, lines);
  add_little_memory(cluster.types, lines);
  add("device type", cluster.types, kMemoryBandwidths, lines);
  add("device type", cluster.types, kLaunches, lines);
  add("device type", cluster.types, kPowers, lines);
  add("link", cluster.links, kBandwidths, lines);
  add("link", cluster.links, kLatencies, lines);
  return lines;
}

}  // namespace stagecraft
