// Lists the sets and orders of devices on which a search tries the planner balanced with software: none: the fastest,
// near ones in a row, all of one type, all of two types. Searches with other software take the parts of the network
// (network_parts.cpp).

#include "sim/search/device_orders.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/cluster/link_table.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

constexpr int kFewRanks = 16, kSteps = 8;
constexpr std::size_t kMostOrdered = 128;  // Links between all pairs are looked at.

/// Reorders the devices so that consecutive ones are of `ranks` stages instead of `each` replicas.
std::vector<DeviceId> transposed(const std::vector<DeviceId>& devices, int ranks, int each) {
  std::vector<DeviceId> result;
  for (int r = 0; r < ranks; ++r)
    for (int k = 0; k < each; ++k) result.push_back(devices[k * ranks + r]);
  return result;
}

/// From the first device on always the one that the fastest link leads to, the first of equals. `uneven`: links differ.
std::vector<DeviceId> nearest_next(const Cluster& cluster, bool& uneven) {
  const LinkTable links(cluster);
  std::vector<DeviceId> left, order{DeviceId{0}};
  for (const DeviceId d : cluster.devices.ids())
    if (d.value > 0) left.push_back(d);
  double slowest = kInfinity, fastest = 0;
  while (!left.empty()) {
    const auto rate = [&](DeviceId d) {
      const auto link = links.find(order.back(), d);
      return link ? link->bandwidth.value : 0;
    };
    auto next = left.begin();
    double highest = -1;
    for (auto d = left.begin(); d != left.end(); ++d) {
      const double r = rate(*d);
      slowest = std::min(slowest, r), fastest = std::max(fastest, r);
      if (r > highest) highest = r, next = d;
    }
    order.push_back(*next);
    left.erase(next);
  }
  uneven = slowest < fastest;
  return order;
}

/// Whether the ways between all pairs of devices are equal: in both directions as fast, as far and over as many links.
bool have_equal_ways(const Cluster& cluster) {
  const Router router(cluster);
  std::optional<Route> first;
  for (const DeviceId a : cluster.devices.ids())
    for (const DeviceId b : cluster.devices.ids()) {
      if (a == b) continue;
      const std::optional<Route> route = router.route(a, b);
      if (!route) return false;
      if (!first) first = route;
      if (route->bandwidth != first->bandwidth || route->latency != first->latency ||
          route->hops.size() != first->hops.size())
        return false;
    }
  return true;
}

}  // namespace

DeviceOrders::DeviceOrders(const Cluster& cluster) {
  for (const DeviceId d : cluster.devices.ids()) fastest_.push_back(d);
  std::stable_sort(fastest_.begin(), fastest_.end(),
                   [&](DeviceId a, DeviceId b) { return cluster.type_of(a).peak > cluster.type_of(b).peak; });
  std::vector<DeviceTypeId> seen;
  for (const DeviceId d : fastest_) {
    const DeviceTypeId type = cluster.devices[d].type;
    const auto at = std::find(seen.begin(), seen.end(), type) - seen.begin();
    if (at == std::ssize(seen)) seen.push_back(type), types_.emplace_back();
    types_[at].push_back(d);
  }
  if (cluster.devices.size() > 2 && cluster.devices.size() <= kMostOrdered) near_ = nearest_next(cluster, uneven_);
  if (cluster.devices.size() > kMostOrdered) {
    const LinkTable links(cluster);
    const auto near = links.find(DeviceId{0}, DeviceId{1}),
               far = links.find(DeviceId{0}, DeviceId{cluster.devices.size() - 1});
    uneven_ = near && far && near->bandwidth.value > far->bandwidth.value;
  }
  alike_ = types_.size() == 1 && cluster.devices.size() <= kMostOrdered && have_equal_ways(cluster);
  if (!std::is_sorted(near_.begin(), near_.end())) return;
  near_.clear();  // It is the order of the cluster.
}

std::vector<std::vector<DeviceId>> DeviceOrders::lists(int ranks, int each) const {
  const std::int64_t count = std::int64_t{ranks} * each;
  std::vector<std::vector<DeviceId>> result;
  std::vector<DeviceId> fast(fastest_.begin(), fastest_.begin() + count);
  std::sort(fast.begin(), fast.end());
  result.push_back(std::move(fast));
  if (std::ssize(near_) >= count) result.emplace_back(near_.begin(), near_.begin() + count);
  for (const std::vector<DeviceId>& type : types_)
    if (std::ssize(type) >= count) result.emplace_back(type.begin(), type.begin() + count);
  const int step = ranks <= kFewRanks ? 1 : ranks / kSteps;
  for (const std::vector<DeviceId>& a : types_)
    for (const std::vector<DeviceId>& b : types_)
      for (int second = step; &a != &b && second < ranks; second += step) {
        const auto of_a = static_cast<std::ptrdiff_t>(ranks - second) * each, of_b = std::ptrdiff_t{second} * each;
        if (of_a > std::ssize(a) || of_b > std::ssize(b)) continue;
        result.emplace_back(a.begin(), a.begin() + of_a);
        result.back().insert(result.back().end(), b.begin(), b.begin() + of_b);
      }
  if (uneven_ && ranks > 1 && each > 1)
    for (std::size_t i = 0, lists = result.size(); i < lists; ++i) result.push_back(transposed(result[i], ranks, each));
  std::vector<std::vector<DeviceId>> different;
  for (std::vector<DeviceId>& list : result)
    if (std::find(different.begin(), different.end(), list) == different.end()) different.push_back(std::move(list));
  return different;
}

UnlikeDevices::UnlikeDevices(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  const LinkTable table(cluster);
  std::map<std::pair<DeviceId, DeviceId>, LinkRate> links;
  for (const DeviceId a : devices)
    for (const DeviceId b : devices)
      if (a != b) links[{a, b}] = table.find(a, b).value_or(LinkRate{});
  const auto differ = [&](std::pair<DeviceId, DeviceId> x, std::pair<DeviceId, DeviceId> y) {
    const LinkRate &one = links.at(x), &other = links.at(y);
    return one.bandwidth != other.bandwidth || one.latency != other.latency;
  };
  const auto have_other_links = [&](DeviceId a, DeviceId b) {
    return std::any_of(devices.begin(), devices.end(), [&](DeviceId c) {
      return c != a && c != b && (differ({a, c}, {b, c}) || differ({c, a}, {c, b}));
    });
  };
  for (const DeviceId a : devices)
    for (const DeviceId b : devices)
      if (a != b && (cluster.devices[a].type != cluster.devices[b].type || have_other_links(a, b)))
        unlike_.emplace(a, b);
}

}  // namespace stagecraft
