// Writes a cluster as a platform file of SimGrid, for `stagecraft export simgrid-xml`.

#include "topologies/simgrid_xml.hpp"

#include <array>
#include <iterator>

#include <fmt/format.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

bool same(const DeviceType& a, const DeviceType& b) {
  const auto figures = [](const DeviceType& t) {
    return std::array{t.peak.value,   t.efficiency,           t.memory_bandwidth.value,
                      t.memory.value, t.memory_reserve.value, t.launch.value,
                      t.speed,        t.idle.value,           t.busy.value};
  };
  return figures(a) == figures(b);
}

/// It has the name of a preset and is another.
bool changed(const DeviceType& type) {
  const std::optional<Accelerator> preset = find_device_preset(type.name);
  return preset && !same(preset->type, type);
}

class Writer {
 public:
  explicit Writer(const Cluster& cluster) : cluster_(cluster) {}

  std::string write() {
    out(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="{}" routing="Full">
)",
        xml_escape(cluster_.name));
    for (const DeviceId d : cluster_.devices.ids()) host(d);
    for (const Link& l : cluster_.links) link(l);
    routes();
    out("  </zone>\n</platform>\n");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void out(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void host(DeviceId d) {
    const DeviceType& type = cluster_.type_of(d);
    const double speed = type.peak.value * type.efficiency;
    out("    <host id=\"{}\" speed=\"{}f\">", xml_escape(cluster_.devices[d].name), shortest(speed > 0 ? speed : 1));
    if (type.memory.value > 0) out("<prop id=\"memory\" value=\"{} B\"/>", shortest(type.memory.value));
    if (type.memory_reserve.value > 0)
      out("<prop id=\"memory_reserve\" value=\"{} B\"/>", shortest(type.memory_reserve.value));
    if (!changed(type)) out("<prop id=\"type\" value=\"{}\"/>", xml_escape(type.name));
    out("</host>\n");
  }

  void link(const Link& l) {
    const char* const policies[] = {"SPLITDUPLEX", "SHARED", "FATPIPE"};
    out("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\" sharing_policy=\"{}\"/>\n", xml_escape(l.name),
        shortest(l.bandwidth.value), shortest(l.latency.value), policies[static_cast<int>(l.duplex)]);
  }

  void routes() {
    const Router router(cluster_);
    const auto count = static_cast<std::int64_t>(cluster_.devices.size());
    for (std::int64_t from = 0; from < count; ++from)
      for (std::int64_t to = 0; to < count; ++to) {
        if (from == to) continue;
        const std::optional<Route> way = router.route(DeviceId{from}, DeviceId{to});
        if (!way) continue;
        out("    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">", xml_escape(cluster_.devices[DeviceId{from}].name),
            xml_escape(cluster_.devices[DeviceId{to}].name));
        for (const Hop& hop : way->hops) crossing(hop);
        out("</route>\n");
      }
  }

  void crossing(const Hop& hop) {
    const Link& l = cluster_.links[hop.link];
    const char* const way = l.duplex != Duplex::Full ? "" : hop.forward ? " direction=\"UP\"" : " direction=\"DOWN\"";
    out("<link_ctn id=\"{}\"{}/>", xml_escape(l.name), way);
  }

  const Cluster& cluster_;
  std::string text_;
};

}  // namespace

std::vector<std::string> types_lost(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const DeviceType& type : cluster.types)
    if (!find_device_preset(type.name) || changed(type)) names.push_back(type.name);
  return names;
}

std::string simgrid_xml(const Cluster& cluster) {
  if (cluster.devices.size() > kMostHosts)
    throw Infeasible("size",
                     fmt::format("a platform file has the way between every two devices written out, which is too much "
                                 "for {} devices; up to {} will do",
                                 cluster.devices.size(), kMostHosts),
                     "export a smaller cluster of the same kind");
  return Writer(cluster).write();
}

}  // namespace stagecraft
