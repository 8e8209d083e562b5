// Replaces a cluster that is a platform file of SimGrid by the devices, links and routes in it, in a scenario or, for
// `import simgrid-xml`, as a cluster file.

#include "sim/experiment/simgrid_xml.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/core.h>

#include "backends/platform.hpp"
#include "sim/cluster/device_presets.hpp"
#include "sim/config/fields.hpp"
#include "sim/config/source.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/scenario.hpp"
#include "topologies/simgrid_xml.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

constexpr double kSame = 1e-9;  // Rounding of a speed that was written.

/// Writes a platform as the generator `explicit` reads it.
class Writer {
 public:
  explicit Writer(const Value& asked) : asked_(asked) {}

  Value write(const Platform& platform) {
    name_links(platform);
    for (const std::string& name : link_names_) check_text(name);
    Value map = list_or_map(Value::Kind::Map);
    for (const char* key : {"name", "title"})
      if (const Value* requested = asked_.find(key)) put(map, key, *requested);
    put(map, "generator", scalar("explicit"));
    Value devices = list_or_map(Value::Kind::List);
    for (const Platform::Host& host : platform.hosts) devices.items.push_back(device(host));
    put(map, "devices", std::move(devices));
    put(map, "links", links(platform));
    put(map, "routes", routes(platform));
    if (!types_.members.empty()) put(map, "types", std::move(types_));
    for (const char* key : {"changes", "jitter"})
      if (const Value* requested = asked_.find(key)) put(map, key, *requested);
    return map;
  }

  const Problems& problems() const { return problems_; }

 private:
  Value list_or_map(Value::Kind kind) const {
    Value result;
    result.kind = kind;
    result.where = asked_.where;
    result.origin = "computed";
    return result;
  }
  Value scalar(std::string text) const { return Value::scalar(std::move(text), asked_.where); }
  void put(Value& map, std::string key, Value value) const {
    map.members.push_back({std::move(key), asked_.where, std::move(value)});
  }

  Value device(const Platform::Host& host) {
    if (host.name.find(' ') != std::string::npos)
      problems_.add(asked_.where, "cluster.simgrid_xml",
                    fmt::format("the host '{}' has a space in its name", host.name));
    check_text(host.name);
    Value map = list_or_map(Value::Kind::Map);
    put(map, "name", scalar(host.name));
    const Value* type = asked_.find("type");
    put(map, "type", type ? *type : scalar(type_of(host)));
    return map;
  }

  void check_text(const std::string& name) {
    if (config::first_odd_byte(name) != std::string::npos)
      problems_.add(asked_.where, "cluster.simgrid_xml", "a name in the file is no UTF-8 text",
                    "save the file as UTF-8");
  }

  /// Whether the host names a preset whose speed and memory it has.
  bool is_preset(const Platform::Host& host, const std::string& memory) const {
    const auto named = host.properties.find("type");
    if (named == host.properties.end() || asked_.has("memory_bandwidth")) return false;
    const std::optional<Accelerator> preset = find_device_preset(named->second);
    if (!preset) return false;
    std::string why;
    const auto bytes = config::parse_quantity(config::Dimension::Size, memory, why);
    if (const auto at = host.properties.find("memory_reserve"); at != host.properties.end()) {
      const auto reserve = config::parse_quantity(config::Dimension::Size, at->second, why);
      if (!reserve || *reserve != preset->type.memory_reserve.value) return false;
    }
    const double reached = preset->type.peak.value * preset->type.efficiency;
    return std::abs(host.speed * host.cores - reached) <= kSame * reached &&
           (memory.empty() || (bytes && *bytes == preset->type.memory.value));
  }

  /// One type for all hosts that are alike.
  std::string type_of(const Platform::Host& host) {
    const double peak = host.speed * host.cores;
    const auto memory_property = host.properties.find("memory");
    const Value* given = asked_.find("memory");
    const std::string memory = memory_property != host.properties.end() ? memory_property->second
                               : given                                  ? given->text
                                                                        : "";
    if (is_preset(host, memory)) return host.properties.at("type");
    const std::string rate = fmt::format("{} FLOP/s", shortest(peak));
    const auto reserve = host.properties.find("memory_reserve");
    const std::string reserved = reserve == host.properties.end() ? "" : reserve->second;
    const auto [place, fresh] = type_names_.try_emplace({rate, memory, reserved});
    if (!fresh) return place->second;
    place->second =
        fmt::format("{}-gflops{}{}", shortest(peak / 1e9), memory_property == host.properties.end() ? "" : "-" + memory,
                    reserved.empty() ? "" : "-less-" + reserved);
    std::erase(place->second, ' ');
    std::string why = "it has none";
    const bool is_valid = !memory.empty() && config::parse_quantity(config::Dimension::Size, memory, why);
    if (!is_valid && problems_.empty())
      problems_.add(asked_.where, "cluster.memory",
                    fmt::format("the memory of host '{}' is not known: {}", host.name, why),
                    "add memory: 16 GiB, or type: NAME for all of them", "missing-field");
    const Value* bandwidth = asked_.find("memory_bandwidth");
    Value type = list_or_map(Value::Kind::Map);
    put(type, "peak", scalar(rate));
    put(type, "memory_bandwidth", bandwidth ? *bandwidth : scalar("1000000 TB/s"));
    put(type, "memory", scalar(memory));
    if (!reserved.empty()) put(type, "memory_reserve", scalar(reserved));
    put(types_, place->second, std::move(type));
    return place->second;
  }

  Value links(const Platform& platform) const {
    Value list = list_or_map(Value::Kind::List);
    for (std::size_t l = 0; l < platform.links.size(); ++l) {
      const Platform::Link& link = platform.links[l];
      Value map = list_or_map(Value::Kind::Map);
      put(map, "name", scalar(link_names_[l]));
      put(map, "bandwidth", scalar(fmt::format("{} B/s", shortest(link.bandwidth))));
      put(map, "latency", scalar(fmt::format("{} s", shortest(link.latency))));
      put(map, "duplex", scalar(link.sharing == Platform::Sharing::Fatpipe ? "unshared" : "half"));
      list.items.push_back(std::move(map));
    }
    return list;
  }

  /// Names links without spaces, which separate the links of a route; "l 1" becomes "l_1_" if there is an "l_1".
  void name_links(const Platform& platform) {
    std::set<std::string> taken;
    for (const Platform::Link& link : platform.links) taken.insert(link.name);
    for (const Platform::Link& link : platform.links) {
      std::string name = link.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      while (name != link.name && !taken.insert(name).second) name += '_';
      link_names_.push_back(std::move(name));
    }
  }

  Value routes(const Platform& platform) const {
    Value list = list_or_map(Value::Kind::List);
    const std::size_t count = platform.hosts.size();
    for (std::size_t from = 0; from < count; ++from)
      for (std::size_t to = 0; to < count; ++to) {
        if (platform.route(from, to).empty()) continue;
        std::string text = platform.hosts[from].name + " " + platform.hosts[to].name;
        for (const std::int32_t link : platform.route(from, to)) text += " " + link_names_[link];
        list.items.push_back(scalar(std::move(text)));
      }
    return list;
  }

  const Value& asked_;
  Problems problems_;
  std::vector<std::string> link_names_;
  Value types_ = list_or_map(Value::Kind::Map);
  std::map<std::array<std::string, 3>, std::string> type_names_;
};

std::string path_next_to(const Value& name) {
  const std::filesystem::path base =
      name.where.file.starts_with('<') ? "" : std::filesystem::path(name.where.file).parent_path();
  return (base / name.text).lexically_normal().string();
}

}  // namespace

void expand_platform(Value& cluster, Problems& problems) {
  const Value* generator = cluster.find("generator");
  if (!generator || generator->text != "simgrid_xml") return;
  const Value& name = cluster.at("simgrid_xml");
  std::vector<std::string> wanted;
  if (const Value* hosts = cluster.find("hosts"))
    for (const Value& host : hosts->items) wanted.push_back(host.text);
  try {
    Writer writer(cluster);
    Value written = writer.write(read_simgrid_platform(path_next_to(name), wanted, kMostHosts));
    for (const Diagnostic& p : writer.problems().list()) problems.add(p.where, p.path, p.message, p.help, p.code);
    if (!writer.problems().empty()) return;
    // Checked again as what it is now, which also fills in defaults.
    Value wrapped;
    wrapped.kind = Value::Kind::Map;
    wrapped.where = cluster.where;
    wrapped.members.push_back({"cluster", cluster.where, std::move(written)});
    wrapped = config::check(wrapped, cluster_fields(), "", problems);
    cluster = *wrapped.find("cluster");
  } catch (const InputError& e) {
    for (const Diagnostic& p : e.problems())
      problems.add(p.where.line > 0 ? p.where : name.where, p.where.line > 0 ? "" : "cluster.simgrid_xml", p.message,
                   p.help, p.code);
  }
}

Value platform_cluster(const std::string& file, std::vector<config::Member> fields) {
  const Where where{"<" + file + ">", 1, 1};
  Value map;
  map.kind = Value::Kind::Map;
  map.where = where;
  map.members = {{"simgrid_xml", where, Value::scalar(file, where)},
                 {"name", where, Value::scalar(std::filesystem::path(file).stem().string(), where)}};
  for (config::Member& field : fields) map.members.push_back(std::move(field));
  Value wrapped;
  wrapped.kind = Value::Kind::Map;
  wrapped.where = where;
  wrapped.members.push_back({"cluster", where, std::move(map)});
  Problems problems;
  wrapped = config::check(wrapped, cluster_fields(), "", problems);
  problems.throw_if_any();
  Value cluster = *wrapped.find("cluster");
  expand_platform(cluster, problems);
  problems.throw_if_any();
  static_cast<void>(build_cluster(cluster));  // Says what no single field shows.
  cluster.members.insert(cluster.members.begin(), {"schema", where, Value::scalar("cluster/1", where)});
  return cluster;
}

}  // namespace stagecraft
