// Turns an experiment into one on a machine with fewer cores than devices, whose cores are a shared link; `stagecraft
// validate` simulates it.

#include "sim/experiment/core_sharing.hpp"

#include <algorithm>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// Bytes that stand for a second of one core: enough that an op of a nanosecond is not rounded to nothing.
constexpr double kCoreSecond = 1e12;

}  // namespace

CompiledExperiment on_shared_cores(CompiledExperiment c, int cores) {
  auto cluster = std::make_shared<Cluster>(c.cluster());
  for (const Device& d : cluster->devices)
    if (d.memory.valid()) throw InternalError("devices that share a memory cannot share cores, too");
  // Without ends no route crosses it.
  const LinkId link =
      cluster->links.push_back({"cores of this machine", Bandwidth{cores * kCoreSecond}, {}, Duplex::Half, {}});
  for (Device& d : cluster->devices) d.memory = link;
  c.experiment.cluster = std::move(cluster);
  c.program.traffic.clear();
  const auto threads = [&p = c.program](DeviceId d) { return p.group_sizes.empty() ? p.group : p.group_sizes[d]; };
  for (const Instruction& i : c.program.instructions)  // A link carries copies, which count half of the traffic.
    c.program.traffic.push_back(i.is_compute() ? 2 * threads(i.device) * i.duration.value * kCoreSecond : 0);
  return c;
}

}  // namespace stagecraft
