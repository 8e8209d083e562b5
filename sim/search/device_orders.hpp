#pragma once

#include <set>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// Lists of devices for plans of balanced without prices; are_alike() serves every search.
class DeviceOrders {
 public:
  explicit DeviceOrders(const Cluster&);

  /// Lists of devices for `ranks` ranks of `each` devices, the devices of a rank consecutive: the fastest devices in
  /// the order of the cluster; devices that fast links connect, one after the other; the devices of one type; and the
  /// devices of two types, each rank with one type, either type first, with each number of ranks on the second (eight
  /// numbers of more than 16). Where devices are not equally far from each other, also the order in which the replicas
  /// of a rank are far apart and its neighbors near.
  std::vector<std::vector<DeviceId>> lists(int ranks, int each) const;

  /// Whether any devices in any order are as good as any others: they have one type, and all pairs equal ways between
  /// them.
  bool are_alike() const { return alike_; }
  /// Whether lists() leaves out lists that could be better.
  bool skips_some() const { return !alike_ && fastest_.size() > 2; }

 private:
  std::vector<DeviceId> fastest_;             ///< Highest peak first.
  std::vector<std::vector<DeviceId>> types_;  ///< Devices of each type, the fastest type first.
  std::vector<DeviceId> near_;                ///< Each next device is the nearest to the one before; empty: all are.
  bool uneven_ = false, alike_ = false;
};

/// Whether it can make a difference that two devices of a list take each other's place: they have other types, or other
/// links to a third one.
class UnlikeDevices {
 public:
  UnlikeDevices(const Cluster&, const std::vector<DeviceId>&);
  bool operator()(DeviceId a, DeviceId b) const { return unlike_.contains({a, b}); }

 private:
  std::set<std::pair<DeviceId, DeviceId>> unlike_;
};

}  // namespace stagecraft
