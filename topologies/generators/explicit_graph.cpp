// A cluster written out: every device, switch and link by name.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/core/text.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Value;

const config::MapSpec& device_fields() {
  static const config::MapSpec spec{
      "One device.",
      {config::text("name").doc("What plans and reports call it."), type_field(),
       config::text("host").optional().doc("The machine that it is in; left out: one of its own.")}};
  return spec;
}

const config::MapSpec& named_link_fields() {
  static const config::MapSpec spec = [] {
    config::MapSpec made{"A cable between two places, or a medium that several share.",
                         {config::text("name").doc("What reports and overrides call it."),
                          config::list("between", config::text("end")).optional().doc("The two ends of a cable."),
                          config::list("among", config::text("station")).optional().doc("The stations of a medium.")}};
    for (config::Field field : link_fields().fields) {
      if (field.name == "duplex") field.default_text.reset(), field.text_doc += " Left out: full; half for a medium.";
      made.fields.push_back(std::move(field));
    }
    return made;
  }();
  return spec;
}

const config::MapSpec kFields{
    "Every device, switch and link by name.",
    {config::list("devices", config::map("device", device_fields())).doc("The devices, in order."),
     config::list("switches", config::text("switch")).optional().doc("Places that forward and do not compute."),
     config::list("links", config::map("link", named_link_fields())).optional().doc("What joins them."),
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
    return writer_.finish();
  }

 private:
  void add_device(const Value& device, const std::string& path) {
    const std::string& name = device.at("name").text;
    const Value* host = device.find("host");
    const int type = writer_.type(device.at("type"), path + ".type", name);
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
    if (!link_names_.insert(name).second)
      writer_.problems().add(value.where, path, fmt::format("another link is called '{}' too", name), {}, "duplicate");
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

  std::vector<VertexId> read_ends(const Value& ends, const std::string& path) {
    std::vector<VertexId> vertices;
    for (std::size_t i = 0; i < ends.items.size(); ++i) {
      const Value& end = ends.items[i];
      const std::string place = fmt::format("{}[{}]", path, i);
      const auto found = places_.find(end.text);
      if (found == places_.end()) {
        writer_.problems().add(end.where, place, fmt::format("no device or switch is called '{}'", end.text),
                               suggest(end.text, names_), "unknown-place");
        continue;
      }
      if (std::find(vertices.begin(), vertices.end(), found->second) != vertices.end())
        writer_.problems().add(end.where, place, fmt::format("'{}' is named twice", end.text), {}, "ends");
      vertices.push_back(found->second);
    }
    return vertices;
  }

  const Value& map_;
  ClusterWriter writer_;
  std::map<std::string, VertexId> places_;
  std::vector<std::string> names_;
  std::set<std::string> link_names_;
};

Cluster build(const Value& map) { return Builder(map).build(); }

}  // namespace

extern const TopologyGenerator explicit_graph{
    .name = "explicit",
    .summary = "Every device, switch and link by name.",
    .source = "no particular machine",
    .fields = &kFields,
    .build = build,
};

}  // namespace stagecraft::topology_generators
