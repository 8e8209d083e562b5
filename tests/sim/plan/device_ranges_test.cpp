// Ranges of device names: written out, and found again.

#include "sim/plan/device_ranges.hpp"

#include <doctest/doctest.h>

#include "sim/core/random.hpp"

namespace stagecraft::device_ranges_test {
namespace {

using Strings = std::vector<std::string>;

Cluster two_nodes(int nodes, int each) {
  Cluster cluster;
  cluster.types.push_back({});
  for (int n = 0; n < nodes; ++n)
    for (int g = 0; g < each; ++g) {
      Device device;
      device.name = "node" + std::to_string(n) + ".gpu" + std::to_string(g);
      cluster.devices.push_back(std::move(device));
    }
  return cluster;
}

std::vector<DeviceId> ids(const std::vector<int>& numbers) {
  std::vector<DeviceId> result;
  for (const int n : numbers) result.emplace_back(n);
  return result;
}

}  // namespace

TEST_CASE("a range stands for its names, in its direction; other text is a name") {
  CHECK(expand_device_range("n.gpu[0-2]") == Strings{"n.gpu0", "n.gpu1", "n.gpu2"});
  CHECK(expand_device_range("n[11-9].gpu0") == Strings{"n11.gpu0", "n10.gpu0", "n9.gpu0"});
  CHECK(expand_device_range("n[0-1].gpu[3-2]") == Strings{"n0.gpu3", "n0.gpu2", "n1.gpu3", "n1.gpu2"});
  CHECK(expand_device_range("n[0-1].gpu[2]") == Strings{"n0.gpu[2]", "n1.gpu[2]"});
  for (const char* name :
       {"gpu0", "a[0]", "a[x-y]", "a[1-]", "a[-1]", "a]1-2[", "a[01-2]", "a[0-99999999]", "a[0-9999].b[0-999]", ""})
    CHECK(expand_device_range(name) == Strings{name});
}

TEST_CASE("three devices and more become a range of the number in which they differ") {
  const Cluster cluster = two_nodes(3, 4);
  CHECK(device_ranges(ids({0, 1, 2, 3, 4, 5}), cluster) == Strings{"node0.gpu[0-3]", "node1.gpu0", "node1.gpu1"});
  CHECK(device_ranges(ids({3, 2, 1, 0}), cluster) == Strings{"node0.gpu[3-0]"});
  CHECK(device_ranges(ids({1, 5, 9}), cluster) == Strings{"node[0-2].gpu1"});
  CHECK(device_ranges(ids({0, 5, 10}), cluster) == Strings{"node0.gpu0", "node1.gpu1", "node2.gpu2"});
  CHECK(device_ranges({}, cluster).empty());
}

TEST_CASE("three ranges and more become one of two numbers, of which the last runs first") {
  const Cluster cluster = two_nodes(3, 4);
  CHECK(device_ranges(ids({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), cluster) == Strings{"node[0-2].gpu[0-3]"});
  CHECK(device_ranges(ids({3, 2, 1, 7, 6, 5, 11, 10, 9}), cluster) == Strings{"node[0-2].gpu[3-1]"});
  CHECK(device_ranges(ids({0, 1, 2, 4, 5, 6}), cluster) == Strings{"node0.gpu[0-2]", "node1.gpu[0-2]"});
  CHECK(device_ranges(ids({0, 4, 8, 1, 5, 9, 2, 6, 10}), cluster) ==
        Strings{"node[0-2].gpu0", "node[0-2].gpu1", "node[0-2].gpu2"});
}

TEST_CASE("ranges of any list of devices stand for that list") {
  const Cluster cluster = two_nodes(12, 12);
  Rng rng(3, "ranges");
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<DeviceId> devices;
    for (int runs = rng.integer(1, 5); runs > 0; --runs) {
      int at = rng.integer(0, 143);
      const int step = std::vector<int>{1, -1, 12, -12, 5}[static_cast<std::size_t>(rng.integer(0, 4))];
      for (int n = rng.integer(1, 15); n > 0 && at >= 0 && at < 144; --n, at += step) devices.emplace_back(at);
    }
    Strings names, expanded;
    for (const DeviceId d : devices) names.push_back(cluster.devices[d].name);
    for (const std::string& range : device_ranges(devices, cluster))
      for (const std::string& name : expand_device_range(range)) expanded.push_back(name);
    CHECK(expanded == names);
  }
}

}  // namespace stagecraft::device_ranges_test
