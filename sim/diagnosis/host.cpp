// Rules: devices that wait for the host, which launches kernels one after the other, and activations that come back
// from its memory too late.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/diagnosis/suggestions.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft::diagnosis {
namespace {

void suggest(Finding& f, Offload offload, const std::string& change) {
  f.suggestions.push_back({{"plan.offload=" + to_text(offload)}, change});
}

bool is_bus(const Cluster& cluster, LinkId link) {
  return std::any_of(cluster.devices.begin(), cluster.devices.end(),
                     [&](const Device& d) { return d.bus_out == link || d.bus_in == link; });
}

}  // namespace

/// Launches cost as much for a small micro-batch as for a large one; CUDA graphs launch a whole pass at once.
std::optional<Finding> launches(const DiagnosisInput& in) {
  const Seconds lost = in.period - in.idealized.without(Cost::Launches);
  Finding f = finding(in, "launches", "host", lost);
  f.sentence = fmt::format("Devices wait for their hosts, which launch kernels one after the other: {} of the period.",
                           percent(f.share));
  if (std::optional<Suggestion> larger = larger_micro_batches(in)) f.suggestions.push_back(std::move(*larger));
  if (in.experiment().software().prices && !in.experiment().software().graphs)
    f.suggestions.push_back({{"software.graphs=true"}, "CUDA graphs, which launch whole passes"});
  return f;
}

/// Copies that take longer than what they run next to. Less that moves is enough; sometimes an earlier fetch is.
std::optional<Finding> host_memory(const DiagnosisInput& in) {
  const std::optional<Offload>& offload = in.experiment().plan.offload;
  if (!offload || !offload->moves_stashes()) return {};
  Finding f = finding(in, "host-memory", {}, in.period - in.idealized.without(Cost::HostMemory));
  const LinkReport* const busiest = busiest_host_link(view_of(in.compiled, in.outcome));
  const bool on_bus = busiest && is_bus(in.cluster(), busiest->link);
  f.sentence = fmt::format(
      "Backwards wait for activations from host memory, which costs {} of the period; the busiest link to a host{} is "
      "{} busy.",
      percent(f.share),
      on_bus
          ? fmt::format(", {}, which messages cross too (cluster.host.pcie),", in.cluster().links[busiest->link].name)
          : "",
      percent(busiest ? busiest->utilisation : 0));
  if (on_bus) {
    const Bandwidth twice{2 * in.cluster().links[busiest->link].bandwidth.value};
    f.suggestions.push_back({{"cluster.host.pcie=" + to_text(twice)}, "PCIe with twice the bandwidth"});
  }
  Offload earlier = *offload, selected = *offload, half = *offload;
  ++earlier.ahead;
  selected.selective = true;
  half.activations /= 2;
  suggest(f, earlier, "activations fetched one op earlier");
  if (!offload->selective) suggest(f, selected, "the least shares of activations with which the plan fits");
  if (!offload->selective) suggest(f, half, "half as much in host memory");
  return f;
}

}  // namespace stagecraft::diagnosis
