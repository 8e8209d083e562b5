#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/report/files.hpp"
#include "sim/report/memory.hpp"

namespace stagecraft {

std::string memory_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  const MemoryHistory history(program, timeline);
  std::string text = "device,time_ns,resident_bytes,stash_bytes,received_bytes,outgoing_bytes\n";
  for (std::size_t d = 0; d < report.devices.size(); ++d) {
    if (!report.devices[d].used) continue;
    const std::string& name = cluster.devices[d].name;
    const std::string device = name.find_first_of(",\"\n") == std::string::npos ? name : csv_quoted(name);
    const std::string resident = shortest(program.memory[d].total().value);
    MemoryCurve curve = history.curve(DeviceId{static_cast<std::int64_t>(d)});
    if (curve.empty() || curve.front().time > 0) curve.insert(curve.begin(), MemorySample{});
    for (const MemorySample& s : curve)
      fmt::format_to(std::back_inserter(text), "{},{:.3f},{},{},{},{}\n", device, s.time * 1e9, resident,
                     shortest(s.stash.value), shortest(s.received.value), shortest(s.outgoing.value));
  }
  return text;
}

}  // namespace stagecraft
