// The tables of devices in the summary of a run: busy, bubble, collectives, messages and memory, and the memory that a
// real run measured; text.cpp prints both.

#include "sim/output/device_table.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostDevices = 16;

/// Rounding must not print -0.0 %.
std::string share_of_run(double share) { return fmt::format("{:.1f} %", std::abs(share) < 5e-4 ? 0.0 : 100 * share); }

std::string of_capacity(const MemoryPeak& m) {
  return m.capacity.value > 0 ? fmt::format("{} of {}", to_text(m.total), to_text(m.capacity + m.reserved))
                              : to_text(m.total);
}

}  // namespace

std::string device_table(const Report& report, const Cluster& cluster, const TextLayout& layout) {
  std::vector<DeviceId> used;
  for (const DeviceId d : report.devices.ids())
    if (report.devices[d].used) used.push_back(d);
  const auto share_of_period = [&](Seconds part) {
    return share_of_run(report.period.value > 0 ? part / report.period : 0);
  };
  const std::size_t more = used.size() > kMostDevices ? used.size() - kMostDevices : 0;
  used.resize(used.size() - more);
  using Row = DeviceId;
  TableColumns<Row> columns{
      {{.heading = "device", .width = 6, .align = TextAlign::Left, .widens = true},
       [&](const Row& d) { return cluster.devices[d].name; }},
      {{.heading = "busy", .width = 7}, [&](const Row& d) { return share_of_run(report.devices[d].utilisation); }},
      {{.heading = "bubble", .width = 9, .drop_order = 1},
       [&](const Row& d) { return share_of_period(report.devices[d].time.bubble); }},
      {{.heading = "collectives", .width = 13, .drop_order = 1},
       [&](const Row& d) { return share_of_period(report.devices[d].time.spent.collectives()); }},
      {{.heading = "messages", .width = 10, .drop_order = 1},
       [&](const Row& d) { return share_of_period(report.devices[d].time.spent.messages); }},
      {{.heading = "peak memory", .width = 24}, [&](const Row& d) { return of_capacity(report.devices[d].memory); }},
      {{.heading = "activations", .width = 11, .drop_order = 2},
       [&](const Row& d) { return report.devices[d].memory.activations; }}};
  if (std::any_of(used.begin(), used.end(), [&](DeviceId d) { return report.devices[d].memory.reserved.value > 0; }))
    columns.insert(columns.end() - 1, {{.heading = "reserved", .width = 10, .drop_order = 3},
                                       [&](const Row& d) { return report.devices[d].memory.reserved; }});
  Table table = make_table<Row>(columns, used);
  if (more > 0) table.more = fmt::format("... and {} more", more);
  return to_text(table, layout);
}

std::string measured_memory_table(const Learnt& learnt, const Cluster& cluster, const TextLayout& layout) {
  std::vector<DeviceId> used;
  for (const DeviceId d : learnt.memory.ids())
    if (cluster.devices.contains(d) && learnt.memory[d].total.value > 0) used.push_back(d);
  using Row = DeviceId;
  const auto part = [&](Bytes MeasuredMemory::*bytes) {
    return [&, bytes](const Row& d) { return learnt.memory[d].*bytes; };
  };
  const TableColumns<Row> columns{
      {{.heading = "measured", .width = 12, .align = TextAlign::Left},
       [&](const Row& d) { return cluster.devices[d].name; }},
      {{.heading = "memory", .width = 12}, part(&MeasuredMemory::total)},
      {{.heading = "weights", .width = 22},
       [&](const Row& d) {
         return fmt::format("{} in {}", to_text(learnt.memory[d].weights), learnt.memory[d].weight_buffers);
       }},
      {{.heading = "gradients", .width = 12, .drop_order = 2}, part(&MeasuredMemory::gradients)},
      {{.heading = "optimizer", .width = 12, .drop_order = 1}, part(&MeasuredMemory::optimizer)},
      {{.heading = "activations", .width = 12}, part(&MeasuredMemory::activations)}};
  return to_text(make_table<Row>(columns, used), layout);
}

}  // namespace stagecraft
