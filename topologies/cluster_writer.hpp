#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/generator.hpp"

// Makes the Cluster of a generator: reads device types and links, and collects problems with their places.

namespace stagecraft {

/// The fields that generators share: a table of own device types, a table of link kinds, and a device's type, which is
/// the name of a preset or of an own type, or a map of device_type_fields().
config::Field types_field();
config::Field links_field();
config::Field type_field();
/// One kind of link, by itself instead of in the table.
config::Field link_field(std::string name, std::string doc);

/// The field `groups`: lists of equal devices, with the fields `name` and `count`.
config::Field groups_field(const config::MapSpec& group);

/// "write a ratio that divides 8, such as 1, 2, 4 or 8", for cables down over cables up.
std::string ratios_text(int down);

/// Puts a cluster together and collects what is wrong with its description.
/// All devices come first, then switches, then links.
class ClusterWriter {
 public:
  explicit ClusterWriter(const config::Value& map) : map_(&map) {}

  /// The device type that `type_field()` describes; `own_name` is for a type without a name.
  DeviceTypeId type(const config::Value& value, const std::string& path, const std::string& own_name);
  /// A link kind that link_fields() describes, written at `path`.
  Link link(const config::Value& value, const std::string& path);
  /// The entry of the table `links` called `name`; a stand-in and a problem at `user` when there is none.
  Link link_kind(const std::string& name, const config::Value& user, const std::string& path);

  VertexId add_device(const std::string& name, DeviceTypeId type, const std::string& host);
  /// Adds devices of a group; their numbers go on where groups share a name.
  void add_group(const std::string& name, DeviceTypeId type, int count);
  VertexId add_switch(const std::string& name);
  void connect(const std::string& name, const Link& kind, std::vector<VertexId> ends);
  /// Adds a fixed route from one device to another.
  void fix(FixedRoute route) { cluster_.routes.push_back(std::move(route)); }

  /// The product of counts, or InputError when it exceeds what a cluster may have.
  int count(const std::vector<int>& factors, const char* what = "devices") const;
  /// Targets take turns on equally good links, in the order of these numbers, which grow along the leaves of the
  /// network. Without numbers, they take turns in the order of the devices.
  void take_turns(IdVector<DeviceId, std::size_t> numbers) { cluster_.turns = std::move(numbers); }
  void take_turns();

  const Cluster& cluster() const { return cluster_; }
  config::Problems& problems() { return problems_; }
  /// The whole cluster, or InputError with every problem. A device that nothing joins to the first one is a problem.
  Cluster finish();

 private:
  void check_joined();
  void check_count(std::size_t count, const char* what) const;
  std::optional<DeviceType> read_preset(const std::string& name);
  DeviceType read_own_type(const config::Value& checked, const std::string& name, const std::string& path);
  void keep(const std::vector<Diagnostic>& diagnostics);

  const config::Value* map_;
  Cluster cluster_;
  std::map<std::string, DeviceTypeId> types_;  ///< Every type that is used.
  std::map<std::string, int> group_sizes_;     ///< By the name of the group.
  config::Problems problems_;
};

/// All fields of a grid except its shape.
std::vector<config::Field> grid_fields();
/// A device on a router at every point of a grid, and a cable to the next point in each dimension; `wrap` joins the
/// ends too. Routes go along the first dimension first.
Cluster grid(const config::Value& map, const std::vector<int>& sizes, bool wrap);

}  // namespace stagecraft
