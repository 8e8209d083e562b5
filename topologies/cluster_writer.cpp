// What generators of clusters share: reads device types and links, adds devices, switches and links to a Cluster, and
// checks the result. Also the grid of `torus` and `ring`.

#include "topologies/cluster_writer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

std::string ratios_text(int down) {
  std::vector<std::string> ratios;
  constexpr int kMost = 64;
  for (int ratio = 1; ratio <= std::min(down, kMost); ++ratio)
    if (down % ratio == 0) ratios.push_back(std::to_string(ratio));
  const std::string last = ratios.back();
  ratios.pop_back();
  return fmt::format("write a ratio that divides {}, such as {}{}", down, ratios.empty() ? "" : join(ratios) + " or ",
                     last);
}

namespace {

using config::Value;

constexpr std::size_t kMost = std::size_t{1} << 22;  // Devices or links; a gigabyte.

std::vector<std::string> keys_of(const Value* table) {
  std::vector<std::string> keys;
  if (table)
    for (const config::Member& member : table->members) keys.push_back(member.key);
  return keys;
}

}  // namespace

config::Field types_field() {
  return config::table("types", config::map("type", device_type_fields()))
      .optional()
      .doc("Device types of your own, by name.");
}

config::Field links_field() {
  return config::table("links", config::map("link", link_fields())).doc("Kinds of links, by name.");
}

config::Field type_field() {
  return config::any("type").doc("A preset such as h100-sxm, a name from `types`, or a map with the fields of a type.");
}

config::Field link_field(std::string name, std::string doc) {
  return config::map(std::move(name), link_fields()).doc(std::move(doc));
}

config::Field groups_field(const config::MapSpec& group) {
  return config::list("groups", config::map("group", group))
      .counted_by("count")
      .doc(
          "The devices, in the order of the cluster. A number in place of the list: this many devices in all, in the "
          "proportions of the groups that it replaces.");
}

DeviceTypeId ClusterWriter::type(const Value& value, const std::string& path, const std::string& own_name) {
  const std::string name = value.is_scalar() ? value.text : own_name;
  if (value.is_scalar())
    if (const auto it = types_.find(name); it != types_.end()) return it->second;

  DeviceType result;
  const Value* table = map_->find("types");
  const Value* definition = table ? table->find(name) : nullptr;
  if (value.is_map()) {
    config::Problems type_problems;
    const Value checked = config::check(value, device_type_fields(), path, type_problems);
    keep(type_problems.list());
    if (type_problems.empty()) result = read_own_type(checked, name, name);
  } else if (value.is_scalar() && definition) {
    result = read_own_type(*definition, name, "types." + name);
  } else if (const auto preset = value.is_scalar() ? read_preset(name) : std::nullopt) {
    result = *preset;
  } else {
    std::vector<std::string> type_names = keys_of(table);
    for (const std::string& word : device_preset_names()) type_names.push_back(word);
    problems_.add(value.where, path,
                  value.is_scalar() ? fmt::format("'{}' is not a known device type", name)
                                    : std::string("a device type is a name or a map"),
                  suggest(name, type_names), "unknown-type");
  }
  const DeviceTypeId type = cluster_.types.push_back(std::move(result));
  if (value.is_scalar()) types_.emplace(name, type);
  return type;
}

void ClusterWriter::keep(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& d : diagnostics) problems_.add(d.where, d.path, d.message, d.help, d.code);
}

std::optional<DeviceType> ClusterWriter::read_preset(const std::string& name) {
  try {
    const std::optional<Accelerator> preset = find_device_preset(name);
    return preset ? std::optional(preset->type) : std::nullopt;
  } catch (const InputError& error) {
    keep(error.problems());
    return DeviceType{};
  }
}

// A problem in one entry must not hide those in the others.
DeviceType ClusterWriter::read_own_type(const Value& checked, const std::string& name, const std::string& path) {
  try {
    return read_device_type(checked, name, path);
  } catch (const InputError& error) {
    keep(error.problems());
    return {};
  }
}

Link ClusterWriter::link(const Value& value, const std::string& path) {
  try {
    return read_link(value, path);
  } catch (const InputError& error) {
    keep(error.problems());
    return {};
  }
}

Link ClusterWriter::link_kind(const std::string& name, const Value& user, const std::string& path) {
  const Value* table = map_->find("links");
  if (const Value* entry = table ? table->find(name) : nullptr) return link(*entry, "links." + name);
  problems_.add(user.where, path, fmt::format("`links` has no entry '{}'", name), suggest(name, keys_of(table)),
                "unknown-link");
  return {};
}

VertexId ClusterWriter::add_device(const std::string& name, DeviceTypeId type, const std::string& host) {
  STAGECRAFT_CHECK(cluster_.switches.empty());
  check_count(cluster_.devices.size(), "devices");
  return cluster_.vertex(cluster_.devices.push_back({name, type, host}));
}

void ClusterWriter::add_group(const std::string& name, DeviceTypeId type, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string device = fmt::format("{}{}", name, group_sizes_[name]++);
    add_device(device, type, device);
  }
}

VertexId ClusterWriter::add_switch(const std::string& name) {
  cluster_.switches.push_back(name);
  return cluster_.switch_vertex(static_cast<int>(cluster_.switches.size()) - 1);
}

void ClusterWriter::connect(const std::string& name, const Link& kind, std::vector<VertexId> ends) {
  check_count(cluster_.links.size(), "links");
  Link link = kind;
  link.name = name;
  link.ends = std::move(ends);
  cluster_.links.push_back(std::move(link));
}

void ClusterWriter::take_turns() {
  cluster_.turns.resize(cluster_.devices.size());
  std::iota(cluster_.turns.begin(), cluster_.turns.end(), std::size_t{0});
}

void ClusterWriter::check_count(std::size_t count, const char* what) const {
  if (count >= kMost)
    throw InputError({{map_->where, {}, fmt::format("the cluster has more than {} {}", kMost, what), {}, "too-many"}});
}

int ClusterWriter::count(const std::vector<int>& factors, const char* what) const {
  std::size_t product = 1;
  for (const int factor : factors) {
    product *= factor;
    if (product > kMost) check_count(product, what);
  }
  return static_cast<int>(product);
}

void ClusterWriter::check_joined() {
  IdVector<VertexId, VertexId> parent(cluster_.devices.size() + cluster_.switches.size());
  for (const VertexId v : parent.ids()) parent[v] = v;
  const auto root = [&](VertexId v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for (const Link& link : cluster_.links)
    for (VertexId end : link.ends) parent[root(end)] = root(link.ends.front());
  for (const FixedRoute& route : cluster_.routes)
    parent[root(cluster_.vertex(route.from))] = root(cluster_.vertex(route.to));
  std::vector<std::string> alone;
  for (std::size_t d = 1; d < cluster_.devices.size(); ++d)
    if (root(VertexId{d}) != root(VertexId{0})) alone.push_back(cluster_.devices[DeviceId{d}].name);
  if (alone.empty()) return;
  const std::size_t count = alone.size();
  if (count > 8) alone.resize(8);
  problems_.add(map_->where, {},
                fmt::format("no path leads from '{}' to '{}'", cluster_.devices.front().name, join(alone, "', '")),
                fmt::format("{} of {} devices {} cut off; add a link or a switch", count, cluster_.devices.size(),
                            count == 1 ? "is" : "are"),
                "unreachable");
}

Cluster ClusterWriter::finish() {
  if (cluster_.devices.empty()) problems_.add(map_->where, {}, "the cluster has no devices", {}, "devices");
  if (problems_.empty() && !cluster_.devices.empty()) check_joined();
  problems_.throw_if_any();
  std::sort(cluster_.routes.begin(), cluster_.routes.end(), [](const FixedRoute& a, const FixedRoute& b) {
    return std::pair{a.from.value, a.to.value} < std::pair{b.from.value, b.to.value};
  });
  return std::move(cluster_);
}

std::vector<config::Field> grid_fields() {
  return {type_field(), config::text("prefix").fallback("chip").doc("Name of the devices; each gets a number."),
          link_field("link", "Link between two neighbors."),
          link_field("port",
                     "Link between a device and its router. Default: the bandwidth of a cable for every transfer, "
                     "without sharing.")
              .optional(),
          types_field()};
}

Cluster grid(const config::Value& map, const std::vector<int>& sizes, bool wrap) {
  ClusterWriter writer(map);
  const int points = writer.count(sizes);
  const Link cable = writer.link(map.at("link"), "link");
  Link port{.name = {}, .bandwidth = cable.bandwidth, .latency = {}, .duplex = Duplex::Unshared, .ends = {}};
  if (const config::Value* value = map.find("port")) port = writer.link(*value, "port");
  const std::string& prefix = map.at("prefix").text;
  const DeviceTypeId type = writer.type(map.at("type"), "type", prefix);
  writer.problems().throw_if_any();

  const auto name = [&](int i) { return fmt::format("{}{}", prefix, i); };
  for (int i = 0; i < points; ++i) writer.add_device(name(i), type, name(i));
  for (int i = 0; i < points; ++i)
    writer.connect(name(i) + ".port", port, {VertexId{i}, writer.add_switch(name(i) + ".router")});
  // Cables of the first dimension are declared first, so that routes prefer it.
  int stride = points;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    stride /= sizes[d];
    for (int i = 0; i < points; ++i) {
      const int at = i / stride % sizes[d];
      const bool last = at == sizes[d] - 1;
      if (last && (!wrap || sizes[d] <= 2)) continue;  // Two points need one cable.
      const int next = last ? i - at * stride : i + stride;
      writer.connect(fmt::format("{}-{}", name(i), name(next)), cable,
                     {writer.cluster().switch_vertex(i), writer.cluster().switch_vertex(next)});
    }
  }
  return writer.finish();
}

}  // namespace stagecraft
