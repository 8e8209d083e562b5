// Bytes on each route, and the use of each link over the run, with the memory that devices share as a link.

#include "sim/result/link_use.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace stagecraft {
namespace {

/// [link][forward]: its index in Report::links; -1 where it has none.
using Places = std::vector<std::array<int, 2>>;

Places places_of(const Cluster& cluster, const Report& report) {
  Places places(cluster.links.size(), {-1, -1});
  for (std::size_t l = 0; l < report.links.size(); ++l)
    places[report.links[l].link.value][report.links[l].forward] = static_cast<int>(l);
  return places;
}

/// The places of the links of each route.
std::vector<std::vector<int>> links_of_routes(const Program& program, const Cluster& cluster, const Places& places) {
  std::vector<bool> used(program.routes.size(), false);
  for (const Transfer& t : program.transfers) used[program.shape(t).route] = true;
  for (const CollectivePhase& phase : program.phases)
    for (int k = 0; k < phase.routes; ++k) used[phase.first_route + k] = true;
  const Router router(cluster);
  std::vector<std::vector<int>> links(program.routes.size());
  for (std::size_t r = 0; r < links.size(); ++r) {
    if (!used[r]) continue;
    for (const RouteEnds& ends : program.copies_of(program.routes[r]))
      for (const Hop& hop : router.require(ends.from, ends.to).hops) {
        const bool forward = hop.forward || cluster.links[hop.link].duplex == Duplex::Half;
        if (const int place = places[hop.link.value][forward]; place >= 0) links[r].push_back(place);
      }
  }
  return links;
}

/// Calls `add(part, share)` with the share of a time from `first` to `last`, counted in parts, that lies in each.
template <class Add>
void over_parts(double first, double last, int parts, Add add) {
  const auto at = [&](double time) { return std::clamp(static_cast<int>(time), 0, parts - 1); };
  if (at(first) == at(last)) return add(at(first), 1.0);
  for (int part = at(first); part <= at(last); ++part)
    add(part, std::max(0.0, std::min(last, part + 1.0) - std::max(first, double(part))) / (last - first));
}

}  // namespace

MemoryUse memory_use(const Program& program, const Cluster& cluster, InstructionId id) {
  const DeviceId device = program.at(id).device;
  if (program.traffic.empty() || !cluster.devices.contains(device)) return {};
  return {cluster.devices[device].memory, program.traffic[id] / 2};
}

std::vector<double> bytes_on_routes(const Program& p) {
  std::vector<double> bytes(p.routes.size(), 0);
  for (const Transfer& t : p.transfers) bytes[p.shape(t).route] += static_cast<double>(p.bytes(t));
  for (const CollectiveCall& c : p.collectives)
    for (const CollectivePhase& phase : p.phases_of(c))
      for (int k = 0; k < phase.routes; ++k) bytes[phase.first_route + k] += static_cast<double>(c.bytes(phase));
  return bytes;
}

std::string unrouted_collectives_text(const Program& program) {
  const auto in_ops = [](const StageParts& stage) {
    const EachPass<TimeByClass>& p = stage.passes;
    return (p.forward.collectives() + p.backward.collectives() + p.weight_gradient.collectives() +
            stage.update.collectives())
               .value > 0;
  };
  const bool unrouted =
      std::any_of(program.parts.begin(), program.parts.end(), in_ops) ||
      std::any_of(program.collectives.begin(), program.collectives.end(), [&](const CollectiveCall& c) {
        return c.purpose != Purpose::LateForward && program.shape(c).phases == 0;
      });
  return unrouted ? "without collectives, which run.collectives: flows counts" : "";
}

std::vector<std::vector<double>> link_use(const Program& p, const Timeline& t, const Cluster& cluster,
                                          const Report& report, int parts) {
  std::vector<std::vector<double>> use(report.links.size(), std::vector<double>(parts, 0));
  if (report.links.empty() || !(report.length.value > 0)) return use;
  const double begin = *std::min_element(t.start.begin(), t.start.end()), each = report.length.value / parts;
  const Places places = places_of(cluster, report);
  const std::vector<std::vector<int>> links = links_of_routes(p, cluster, places);
  const auto spread = [&](std::size_t instruction, std::span<const int> over, double bytes) {
    over_parts((t.start[InstructionId{instruction}] - begin) / each, (t.end[InstructionId{instruction}] - begin) / each,
               parts, [&](int part, double share) {
                 for (const int link : over) use[link][part] += bytes * share;
               });
  };
  const auto add = [&](std::int32_t route, std::size_t instruction, double bytes) {
    spread(instruction, links[route], bytes);
  };
  for (std::size_t n = 0; n < p.traffic.size(); ++n)
    if (const MemoryUse m = memory_use(p, cluster, InstructionId{n}); m.link.valid() && m.bytes > 0)
      spread(n, {&places[m.link.value][1], 1}, m.bytes);
  for (const Transfer& transfer : p.transfers)
    add(p.shape(transfer).route, transfer.send.value, static_cast<double>(p.bytes(transfer)));
  for (const CollectiveCall& c : p.collectives)
    for (const CollectivePhase& phase : p.phases_of(c))
      for (int k = 0; k < phase.routes; ++k)
        add(phase.first_route + k, static_cast<std::size_t>(c.first.value), static_cast<double>(c.bytes(phase)));
  for (std::size_t l = 0; l < use.size(); ++l) {
    const Link& link = cluster.links[report.links[l].link];
    const double capacity = link.duplex == Duplex::Unshared ? 0 : link.bandwidth.value * each;
    for (double& bytes : use[l]) bytes = capacity > 0 ? bytes / capacity : 0;
  }
  return use;
}

}  // namespace stagecraft
