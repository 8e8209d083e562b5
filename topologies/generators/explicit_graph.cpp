// A cluster written out: every device, switch and link by name, and routes that are given.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/core/text.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Value;

const config::MapSpec& device_fields() {
  static const config::MapSpec spec{
      "One device.",
      {config::text("name").doc("What plans and reports call it."), type_field(),
       config::text("host").optional().doc("Name of the machine that it is in. Default: a machine of one device.")}};
  return spec;
}

const config::MapSpec& named_link_fields() {
  static const config::MapSpec spec = [] {
    config::MapSpec derived{
        "A cable between two places, or a medium that several share.",
        {config::text("name").doc("What reports and overrides call it."),
         config::list("between", config::text("end")).optional().doc("The two ends of a cable."),
         config::list("among", config::text("station"))
             .optional()
             .doc("The stations of a shared medium. A link without `between` and `among` is used by `routes` only.")}};
    for (config::Field field : link_fields().fields) {
      if (field.name == "duplex")
        field.default_text.reset(), field.text_doc += " Default: full, and half for a medium.";
      derived.fields.push_back(std::move(field));
    }
    return derived;
  }();
  return spec;
}

const config::MapSpec kExplicitGraphFields{
    "Every device, switch and link by name.",
    {config::list("devices", config::map("device", device_fields())).doc("The devices, in order."),
     config::list("switches", config::text("switch"))
         .optional()
         .doc("Names of switches, which forward messages and do not compute."),
     config::list("links", config::map("link", named_link_fields()))
         .optional()
         .doc("Links between devices and switches."),
     config::list("routes", config::text("route"))
         .optional()
         .doc("Routes that are given, not computed: from, to, and the links between them, with spaces."),
     types_field()}};

class Builder {
 public:
  explicit Builder(const Value& map) : map_(map), writer_(map) {}

  Cluster build() {
    const Value& devices = map_.at("devices");
    for (std::size_t d = 0; d < devices.items.size(); ++d) add_device(devices.items[d], fmt::format("devices[{}]", d));
    if (const Value* switches = map_.find("switches"))
      for (std::size_t s = 0; s < switches->items.size(); ++s) {
        const std::string& name = switches->items[s].text;
        add_place(name, switches->items[s], fmt::format("switches[{}]", s), writer_.add_switch(name));
      }
    if (const Value* links = map_.find("links"))
      for (std::size_t l = 0; l < links->items.size(); ++l) add_link(links->items[l], fmt::format("links[{}]", l));
    if (const Value* routes = map_.find("routes"))
      for (std::size_t r = 0; r < routes->items.size(); ++r) add_route(routes->items[r], fmt::format("routes[{}]", r));
    return writer_.finish();
  }

 private:
  void add_device(const Value& device, const std::string& path) {
    const std::string& name = device.at("name").text;
    const Value* host = device.find("host");
    const DeviceTypeId type = writer_.type(device.at("type"), path + ".type", name);
    add_place(name, device, path, writer_.add_device(name, type, host ? host->text : name));
  }

  void add_place(const std::string& name, const Value& value, const std::string& path, VertexId vertex) {
    if (!places_.emplace(name, vertex).second)
      writer_.problems().add(value.where, path, fmt::format("another place is called '{}' too", name), {}, "duplicate");
    names_.push_back(name);
  }

  void add_link(const Value& value, const std::string& path) {
    const std::string& name = value.at("name").text;
    const Value *between = value.find("between"), *among = value.find("among");
    if (!link_numbers_.emplace(name, link_numbers_.size()).second)
      writer_.problems().add(value.where, path, fmt::format("another link is called '{}' too", name), {}, "duplicate");
    if (!between && !among && map_.has("routes")) return add_endless(value, name, path);
    if ((between == nullptr) == (among == nullptr)) {
      writer_.problems().add(value.where, path, "a link has either `between` or `among`",
                             "between: [a, b] is a cable, among: [a, b, c] a shared medium", "ends");
      return;
    }
    const Value& ends = between ? *between : *among;
    const std::string ends_path = path + (between ? ".between" : ".among");
    if (between ? ends.items.size() != 2 : ends.items.size() < 2)
      writer_.problems().add(ends.where, ends_path, fmt::format("it has {} ends", ends.items.size()),
                             between ? "a cable has two; write `among` for a shared medium" : "at least two", "ends");
    Link kind = writer_.link(value, path);
    const Value* duplex = value.find("duplex");
    if (among && !duplex) kind.duplex = Duplex::Half;
    if (among && duplex && duplex->text == "full")
      writer_.problems().add(duplex->where, path + ".duplex", "a shared medium has no two directions",
                             "half, or unshared for no contention", "duplex");
    writer_.connect(name, kind, read_ends(ends, ends_path));
  }

  /// Only routes lead over it, which say nothing of directions.
  void add_endless(const Value& value, const std::string& name, const std::string& path) {
    Link kind = writer_.link(value, path);
    const Value* duplex = value.find("duplex");
    if (!duplex) kind.duplex = Duplex::Half;
    if (duplex && duplex->text == "full")
      writer_.problems().add(duplex->where, path + ".duplex", "a link without ends has no two directions",
                             "write one for each direction, or `between`", "duplex");
    writer_.connect(name, kind, {});
  }

  void add_route(const Value& value, const std::string& path) {
    std::vector<std::string> words = split(value.text, ' ');
    std::erase(words, "");
    const auto wrong = [&](const std::string& message, const std::string& help = {}) {
      writer_.problems().add(value.where, path, message, help, "route");
    };
    if (words.size() < 3) return wrong("a route has a start, an end and links", "such as: a b cable-1 cable-2");
    const auto device = [&](const std::string& name) {
      const auto it = places_.find(name);
      const DeviceId id = it != places_.end() ? DeviceId{it->second.value} : DeviceId{};
      if (writer_.cluster().devices.contains(id)) return id;
      wrong(fmt::format("no device is called '{}'", name), suggest(name, names_));
      return DeviceId{};
    };
    FixedRoute route{device(words[0]), device(words[1]), {}};
    if (!route.from.valid() || !route.to.valid()) return;
    if (route.from == route.to) return wrong("a device needs no way to itself");
    if (!fixed_.emplace(route.from.value, route.to.value).second)
      return wrong(fmt::format("the way from '{}' to '{}' is given twice", words[0], words[1]));
    VertexId at = writer_.cluster().vertex(route.from);
    for (std::size_t w = 2; w < words.size(); ++w) {
      const auto hop = step(words[w], at);
      if (!hop) return wrong(fmt::format("'{}' does not go on here", words[w]), help_for(words[w]));
      route.hops.push_back(*hop);
    }
    if (at.valid() && at != writer_.cluster().vertex(route.to))
      return wrong(fmt::format("this way does not lead to '{}'", words[1]));
    writer_.fix(std::move(route));
  }

  std::string help_for(const std::string& link) const {
    if (link_numbers_.count(link) > 0) return "it starts elsewhere";
    std::vector<std::string> link_names;
    for (const auto& entry : link_numbers_) link_names.push_back(entry.first);
    return suggest(link, link_names);
  }

  /// Goes over a link; `at` becomes not valid where its many ends, or none, do not tell.
  std::optional<Hop> step(const std::string& name, VertexId& at) const {
    const auto it = link_numbers_.find(name);
    if (it == link_numbers_.end() || it->second >= writer_.cluster().links.size()) return {};
    const Link& link = writer_.cluster().links[LinkId{it->second}];
    Hop hop{LinkId{it->second}, true};
    const auto here = std::find(link.ends.begin(), link.ends.end(), at);
    if (at.valid() && !link.ends.empty() && here == link.ends.end()) return {};
    if (link.duplex == Duplex::Full && !at.valid()) return {};
    if (link.ends.size() != 2 || !at.valid()) {
      at = VertexId{};
      return hop;
    }
    hop.forward = here == link.ends.begin();
    at = link.ends[hop.forward ? 1 : 0];
    return hop;
  }

  std::vector<VertexId> read_ends(const Value& ends, const std::string& path) {
    std::vector<VertexId> vertices;
    for (std::size_t i = 0; i < ends.items.size(); ++i) {
      const Value& end = ends.items[i];
      const std::string place = fmt::format("{}[{}]", path, i);
      const auto it = places_.find(end.text);
      if (it == places_.end()) {
        writer_.problems().add(end.where, place, fmt::format("no device or switch is called '{}'", end.text),
                               suggest(end.text, names_), "unknown-place");
        continue;
      }
      if (std::find(vertices.begin(), vertices.end(), it->second) != vertices.end())
        writer_.problems().add(end.where, place, fmt::format("'{}' is named twice", end.text), {}, "ends");
      vertices.push_back(it->second);
    }
    return vertices;
  }

  const Value& map_;
  ClusterWriter writer_;
  std::map<std::string, VertexId> places_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> link_numbers_;
  std::set<std::pair<std::int32_t, std::int32_t>> fixed_;
};

Cluster build_explicit_graph(const Value& map) { return Builder(map).build(); }

}  // namespace

extern const TopologyGenerator explicit_graph{
    .name = "explicit",
    .summary = "Every device, switch and link by name.",
    .source = "no particular machine",
    .fields = &kExplicitGraphFields,
    .build = build_explicit_graph,
};

}  // namespace stagecraft::topology_generators
