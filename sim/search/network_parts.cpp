// Finds the parts of a network that slow links separate, such as sites, in which a search also tries plans alone.

#include "sim/search/network_parts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "sim/cluster/link_table.hpp"
#include "sim/core/disjoint_sets.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostCompared = 256;  // Links between all pairs are looked at.
constexpr int kMostParts = 4;               // With more parts, they are single nodes, and a search in one is no use.
constexpr double kFaster = 1.5;             // Links this much faster than the slowest hold a part together.

/// One device of each node; nothing where there are too many.
std::vector<DeviceId> representatives(const Cluster& cluster, IdVector<DeviceId, int>& member_of) {
  std::vector<DeviceId> first;
  const std::vector<int> nodes = node_of(cluster);
  for (const DeviceId d : cluster.devices.ids()) {
    if (nodes[d.value] == std::ssize(first)) first.push_back(d);
    member_of.push_back(nodes[d.value]);
  }
  if (first.size() > kMostCompared) first.clear();
  return first;
}

}  // namespace

NetworkParts::NetworkParts(const Cluster& cluster) : cluster_(cluster) {
  IdVector<DeviceId, int> member_of;
  const std::vector<DeviceId> devices = representatives(cluster, member_of);
  const LinkTable links(cluster);
  std::vector<std::vector<double>> rates(devices.size(), std::vector<double>(devices.size(), kInfinity));
  double slowest = kInfinity;
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = a + 1; b < devices.size(); ++b) {
      const auto link = links.find(devices[a], devices[b]);
      slowest = std::min(slowest, rates[a][b] = link ? link->bandwidth.value : 0);
    }
  const int count = static_cast<int>(devices.size());
  DisjointSets fast(count);
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b)
      if (rates[a][b] > kFaster * slowest) fast.join(a, b);
  std::vector<int> part;
  for (int i = 0; i < count; ++i) part.push_back(fast.root(i));
  const std::set<int> different(part.begin(), part.end());
  count_ = static_cast<int>(different.size());
  if (count_ < 2 || count_ > kMostParts || count_ == std::ssize(cluster.devices)) return;
  slowest_ = Bandwidth{slowest};
  for (const DeviceId d : cluster.devices.ids()) part_.push_back(part[member_of[d]]);
}

std::string NetworkParts::device_text(const std::vector<DeviceId>& devices) const {
  std::set<std::string> types;
  std::set<int> parts;
  for (const DeviceId d : devices) {
    types.insert(cluster_.type_of(d).name);
    if (!part_.empty()) parts.insert(part_[d]);
  }
  std::string text;
  for (const std::string& name : types) text += (text.empty() ? "" : " and ") + name;
  return part_.empty() ? text
                       : text + fmt::format(" in {} of {} of the network", parts.size(), pluralize(count_, "part"));
}

std::vector<std::vector<DeviceId>> NetworkParts::different_parts() const {
  std::map<int, std::vector<DeviceId>> parts;
  if (!part_.empty())
    for (const DeviceId d : cluster_.devices.ids()) parts[part_[d]].push_back(d);
  const LinkTable links(cluster_);
  using Step = std::tuple<DeviceTypeId, double, double>;  // To a device of this type, with this bandwidth and latency.
  std::set<std::vector<Step>> seen;
  std::vector<std::vector<DeviceId>> different;
  for (auto& [number, devices] : parts) {
    std::vector<Step> steps;
    DeviceId before = devices.front();
    for (const DeviceId d : devices) {
      const auto link = links.find(before, d);
      steps.emplace_back(cluster_.devices[d].type, link ? link->bandwidth.value : 0, link ? link->latency.value : 0);
      before = d;
    }
    if (seen.insert(std::move(steps)).second) different.push_back(std::move(devices));
  }
  return different;
}

std::string NetworkParts::explanation() const {
  if (part_.empty()) return {};
  return fmt::format("parts of the network: devices with more than {} between them", to_text(slowest_));
}

}  // namespace stagecraft
