// Sizes, lengths of routes and contention in closed form, on random shapes.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <cstdlib>
#include <numeric>
#include <set>

#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "tests/support/topologies.hpp"

namespace stagecraft::networks_test {
using test::busiest;
using test::make_cluster;
using test::places_of;
using test::wrong_cluster;

namespace {

const std::string kType = "type: v100-16, ";
const std::string kLink = "link: {bandwidth: 1 GB/s, latency: 1 us}";

std::string list(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (const int n : numbers) words.push_back(std::to_string(n));
  return "[" + join(words, ", ") + "]";
}

int product(const std::vector<int>& numbers, std::size_t from = 0) {
  return std::accumulate(numbers.begin() + static_cast<std::ptrdiff_t>(from), numbers.end(), 1, std::multiplies<>());
}

/// Checks that every pair has a connected route of `hops(a, b)` links, with the same number in both directions.
template <class Hops>
void check_routes(const Cluster& cluster, Hops hops) {
  const Router router(cluster);
  const int devices = static_cast<int>(cluster.devices.size());
  for (int a = 0; a < devices; ++a)
    for (int b = 0; b < devices; ++b) {
      if (a == b) continue;
      const Route route = router.require(DeviceId{a}, DeviceId{b});
      CAPTURE(a);
      CAPTURE(b);
      CHECK_FALSE(places_of(cluster, route, DeviceId{a}, DeviceId{b}).empty());
      CHECK(static_cast<int>(route.hops.size()) == hops(a, b));
    }
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

// ---- Fat trees

namespace {

Cluster fat_tree(const std::vector<int>& down, const std::vector<int>& ratios = {}) {
  const std::string over = ratios.empty() ? "" : "oversubscription: " + list(ratios) + ", ";
  return make_cluster("fat_tree", "{down: " + list(down) + ", " + over + kType + kLink + "}");
}

}  // namespace

TEST_CASE("fat tree: random shapes have their switches, cables and lengths of routes") {
  Rng rng(3, "fat tree");
  for (int round = 0; round < 60; ++round) {
    std::vector<int> down, ratios, up;
    for (int l = rng.integer(1, 4); l > 0; --l) {
      const int ratio = rng.integer(1, 2), ups = rng.integer(1, 3);
      down.push_back(ratio * ups);
      ratios.push_back(ratio);
      up.push_back(ups);
    }
    ratios.pop_back();
    const Cluster cluster = fat_tree(down, ratios);
    CAPTURE(list(down));
    const int devices = product(down);
    REQUIRE(static_cast<int>(cluster.devices.size()) == devices);
    int switches = 0, cables = devices, positions = 1;
    for (std::size_t l = 0; l < down.size(); ++l) {
      const int level = product(down, l + 1) * positions;
      switches += level;
      if (l + 1 < down.size()) cables += level * up[l];
      positions *= up[l];
    }
    CHECK(static_cast<int>(cluster.switches.size()) == switches);
    CHECK(static_cast<int>(cluster.links.size()) == cables);
    check_routes(cluster, [&](int a, int b) {
      int level = 0;
      for (; a != b; ++level) a /= down[level], b /= down[level];
      return 2 * level;
    });
  }
}

TEST_CASE("fat tree: no shift meets anywhere without oversubscription") {
  for (const std::vector<int>& down : {std::vector<int>{4, 4}, {2, 2, 2}, {3, 3, 2}, {4, 2}, {2, 4, 3}}) {
    CAPTURE(list(down));
    const Cluster cluster = fat_tree(down);
    const int devices = product(down);
    for (int shift = 1; shift < devices; ++shift) {
      CAPTURE(shift);
      CHECK(busiest(cluster, [&](int d) { return (d + shift) % devices; }) == 1);
    }
  }
}

TEST_CASE("fat tree: a shift by whole leaves shares cables as the oversubscription says") {
  for (const int ratio : {1, 2, 4, 8, 16}) {
    CAPTURE(ratio);
    const Cluster cluster = fat_tree({16, 4}, {ratio});
    for (const int leaves : {1, 2, 3}) CHECK(busiest(cluster, [&](int d) { return (d + 16 * leaves) % 64; }) == ratio);
    CHECK(busiest(cluster, [](int d) { return d / 16 * 16 + (d + 1) % 16; }) == 1);  // Inside the leaves.
  }
}

TEST_CASE("fat tree: half of its cables at the top are the bisection") {
  // Every device of one half sends to one of the other; the cables at the top carry one transfer each way.
  const Cluster cluster = fat_tree({4, 4, 4});
  std::set<LinkId> used;
  const Router router(cluster);
  for (int d = 0; d < 32; ++d) {
    const Route route = router.require(DeviceId{d}, DeviceId{d + 32});
    REQUIRE(route.hops.size() == 6);
    used.insert(route.hops[2].link);
  }
  CHECK(used.size() == 32);
}

TEST_CASE("fat tree: problems are reported with their place") {
  const auto wrong = [](const std::string& shape) {
    return wrong_cluster("fat_tree", "{" + shape + ", " + kType + kLink + "}");
  };
  has(wrong("down: []"), "down: there is no level");
  has(wrong("down: [0, 4]"), "down[0]");
  has(wrong("down: [4, 4], oversubscription: [0.5]"), "oversubscription[0]");
  has(wrong("down: [4, 4], oversubscription: [3]"), "4 cables down over 3 is not a whole number of cables up");
  has(wrong("down: [4, 4], oversubscription: [8]"), "not a whole number");
  has(wrong("down: [4, 4], oversubscription: [1, 1]"), "2 ratios for 1 level");
  has(wrong("down: [100000, 100000, 100000]"), "more than 4194304 devices");
  CHECK(make_cluster("fat_tree", "{down: [12, 4], oversubscription: [1.5], " + kType + kLink + "}").links.size() ==
        48 + 4 * 8);
}

// ---- Grids

namespace {

/// Steps from a to b in each dimension of a grid.
std::vector<int> steps_of(int a, int b, const std::vector<int>& sizes, bool wrap) {
  std::vector<int> steps(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const int away = std::abs(a % sizes[d] - b % sizes[d]);
    steps[d] = wrap ? std::min(away, sizes[d] - away) : away;
    a /= sizes[d], b /= sizes[d];
  }
  return steps;
}

}  // namespace

TEST_CASE("torus and mesh: random shapes have their cables and distances") {
  Rng rng(4, "torus");
  for (int round = 0; round < 40; ++round) {
    const bool wrap = rng.integer(0, 3) > 0;
    std::vector<int> sizes;
    for (int d = rng.integer(1, 4); d > 0; --d) sizes.push_back(rng.integer(1, 5));
    const Cluster cluster = make_cluster(
        "torus", fmt::format("{{sizes: {}, wrap: {}, {}{}}}", list(sizes), wrap ? "true" : "false", kType, kLink));
    CAPTURE(list(sizes));
    CAPTURE(wrap);
    const int points = product(sizes);
    REQUIRE(static_cast<int>(cluster.devices.size()) == points);
    int cables = points;  // Cables of the ports.
    for (const int n : sizes) cables += wrap && n > 2 ? points : points / n * (n - 1);
    CHECK(static_cast<int>(cluster.links.size()) == cables);
    check_routes(cluster, [&](int a, int b) {
      const std::vector<int> steps = steps_of(a, b, sizes, wrap);
      return std::accumulate(steps.begin(), steps.end(), 2);
    });
  }
}

TEST_CASE("torus: routes follow the first dimension first") {
  const std::vector<int> sizes{3, 4, 5};
  const Cluster cluster = make_cluster("torus", "{sizes: [3, 4, 5], " + kType + kLink + "}");
  const Router router(cluster);
  for (int a = 0; a < 60; ++a)
    for (int b = 0; b < 60; ++b) {
      std::vector<int> dimensions, expected;
      for (const Hop& hop : router.require(DeviceId{a}, DeviceId{b}).hops)
        if (hop.link.value >= 60) dimensions.push_back((hop.link.value - 60) / 60);
      const std::vector<int> steps = steps_of(a, b, sizes, true);
      for (int d = 0; d < 3; ++d) expected.insert(expected.end(), static_cast<std::size_t>(steps[d]), d);
      CHECK(dimensions == expected);
    }
}

TEST_CASE("torus: the bisection has two cables for each point of the cut") {
  for (const std::vector<int>& sizes : {std::vector<int>{4, 4, 4}, {8, 4}, {6, 3, 2}}) {
    const Cluster cluster = make_cluster("torus", "{sizes: " + list(sizes) + ", " + kType + kLink + "}");
    const int points = product(sizes), half = points / 2;  // The first dimension is the longest, and even.
    int across = 0;
    for (const Link& link : cluster.links) {
      const auto side = [&](VertexId v) { return v.value % points < half; };
      across += side(link.ends[0]) != side(link.ends[1]) ? 1 : 0;
    }
    CHECK(across == 2 * points / sizes[0]);
  }
}

TEST_CASE("torus: a device uses all its cables at once unless its port is given") {
  const Cluster open = make_cluster("torus", "{sizes: [3], " + kType + kLink + "}");
  CHECK(open.links[LinkId{0}].duplex == Duplex::Unshared);
  CHECK(open.links[LinkId{0}].latency.value == 0);
  const Cluster narrow = make_cluster("torus", "{sizes: [3], port: {bandwidth: 1 MB/s}, " + kType + kLink + "}");
  CHECK(Router(narrow).require(DeviceId{0}, DeviceId{2}).bandwidth.value == 1e6);
  has(wrong_cluster("torus", "{sizes: [], " + kType + kLink + "}"), "sizes: there is no dimension");
  has(wrong_cluster("torus", "{sizes: [4, 0], " + kType + kLink + "}"), "sizes[1]");
  has(wrong_cluster("torus", "{sizes: [1000000, 1000000, 1000000, 1000000], " + kType + kLink + "}"),
      "more than 4194304");
}

TEST_CASE("ring: routes take the shorter way round") {
  for (const int n : {1, 2, 3, 4, 7, 12}) {
    CAPTURE(n);
    const Cluster cluster = make_cluster("ring", fmt::format("{{devices: {}, {}{}}}", n, kType, kLink));
    CHECK(static_cast<int>(cluster.links.size()) == n + (n > 2 ? n : n - 1));
    check_routes(cluster, [&](int a, int b) { return 2 + std::min(std::abs(a - b), n - std::abs(a - b)); });
  }
  has(wrong_cluster("ring", "{devices: 0, " + kType + kLink + "}"), "devices");
}

// ---- Dragonflies

TEST_CASE("dragonfly: random shapes have their cables, and at most three between routers on a route") {
  Rng rng(5, "dragonfly");
  const std::string links = kType + kLink + ", local: {bandwidth: 2 GB/s}, global: {bandwidth: 4 GB/s}}";
  for (int round = 0; round < 40; ++round) {
    const int groups = rng.integer(1, 6), routers = rng.integer(1, 4), each = rng.integer(1, 3);
    const int cables = rng.integer(1, 3);
    CAPTURE(groups);
    CAPTURE(routers);
    CAPTURE(cables);
    const Cluster cluster = make_cluster(
        "dragonfly",
        fmt::format("{{groups: {}, routers: {}, devices: {}, cables: {}, ", groups, routers, each, cables) + links);
    const int devices = groups * routers * each, global = groups * (groups - 1) / 2 * cables;
    REQUIRE(static_cast<int>(cluster.devices.size()) == devices);
    CHECK(static_cast<int>(cluster.links.size()) == devices + groups * routers * (routers - 1) / 2 + global);

    std::vector<int> ports(static_cast<std::size_t>(groups * routers));  // Global cables of each router.
    for (const Link& link : cluster.links)
      if (link.bandwidth.value == 4e9)
        for (VertexId end : link.ends) ++ports[end.value - devices];
    CHECK(*std::max_element(ports.begin(), ports.end()) - *std::min_element(ports.begin(), ports.end()) <= 1);

    const Router router(cluster);
    for (int a = 0; a < devices; ++a)
      for (int b = 0; b < devices; ++b) {
        if (a == b) continue;
        const Route route = router.require(DeviceId{a}, DeviceId{b});
        CHECK_FALSE(places_of(cluster, route, DeviceId{a}, DeviceId{b}).empty());
        std::string kinds;
        for (const Hop& hop : route.hops)
          kinds += std::to_string(std::lround(cluster.links[hop.link].bandwidth.value / 1e9));
        const int ra = a / each, rb = b / each;
        if (ra == rb) CHECK(kinds == "11");
        if (ra != rb && ra / routers == rb / routers) CHECK(kinds == "121");
        if (ra / routers != rb / routers) CHECK(std::set<std::string>{"141", "1241", "1421", "12421"}.contains(kinds));
        CHECK(router.require(DeviceId{b}, DeviceId{a}).hops.size() == route.hops.size());
      }
  }
}

TEST_CASE("dragonfly: targets take turns on parallel cables") {
  const Cluster cluster = make_cluster("dragonfly", "{groups: 2, routers: 1, devices: 4, cables: 4, " + kType + kLink +
                                                        ", local: {bandwidth: 1 GB/s}, global: {bandwidth: 1 GB/s}}");
  CHECK(busiest(cluster, [](int d) { return (d + 4) % 8; }) == 1);
  has(wrong_cluster("dragonfly", "{groups: 0, routers: 1, devices: 4, " + kType + kLink +
                                     ", local: {bandwidth: 1 GB/s}, global: {bandwidth: 1 GB/s}}"),
      "groups");
}

// ---- Pods with rails

TEST_CASE("rail pods: nodes have their cables and lengths of routes") {
  const std::string rest = kType + "nvlink: {bandwidth: 450 GB/s}, nic: {bandwidth: 50 GB/s}}";
  for (const auto& [gpus, ratio] : {std::pair{2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 4}}) {
    const int rails = gpus, nodes = 4, devices = 2 * nodes * rails, leaves = 2 * rails, spines = nodes / ratio;
    CAPTURE(rails);
    const Cluster cluster = make_cluster(
        "rail_pods", fmt::format("{{pods: 2, nodes: {}, gpus: {}, oversubscription: {}, ", nodes, rails, ratio) + rest);
    CHECK(static_cast<int>(cluster.devices.size()) == devices);
    CHECK(static_cast<int>(cluster.switches.size()) == 2 * nodes + leaves + spines);
    CHECK(static_cast<int>(cluster.links.size()) == 2 * devices + leaves * spines);
    check_routes(cluster, [&](int a, int b) {
      const bool node = a / rails == b / rails, rail = a % rails == b % rails;
      return node || (rail && a / (devices / 2) == b / (devices / 2)) ? 2 : 4;
    });
    // To the same rail of the other pod, and to the next rail of the next node: never more than the oversubscription.
    CHECK(busiest(cluster, [&](int d) { return (d + devices / 2) % devices; }) == ratio);
    CHECK(busiest(cluster, [&](int d) { return (d / rails + 1) % (2 * nodes) * rails + (d + 1) % rails; }) == ratio);
  }
  CHECK(make_cluster("rail_pods", "{nodes: 3, gpus: 1, " + rest).links.size() == 3);
  has(wrong_cluster("rail_pods", "{nodes: 3, oversubscription: 2, " + rest),
      "3 cables down over 2 is not a whole number");
  has(wrong_cluster("rail_pods", "{nodes: 4, oversubscription: 0.5, " + rest), "oversubscription");
  has(wrong_cluster("rail_pods", "{nodes: 0, " + rest), "nodes");
}

// ---- Small networks

TEST_CASE("edge_lan: devices have their own adapters and share one medium") {
  const Cluster cluster = make_cluster("edge_lan",
                                       "groups:\n  - {name: pi, type: raspberry-pi-4, count: 3, bandwidth: 20 MB/s}\n"
                                       "  - {name: nano, type: jetson-nano}\n"
                                       "medium: {bandwidth: 50 MB/s, latency: 1 ms}\n");
  REQUIRE(cluster.devices.size() == 4);
  REQUIRE(cluster.links.size() == 5);
  for (const Link& link : cluster.links) CHECK(link.duplex == Duplex::Half);
  const Router router(cluster);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      const Route route = router.require(DeviceId{a}, DeviceId{b});
      CHECK(route.hops == std::vector<Hop>{{LinkId{a}, true}, {LinkId{4}, true}, {LinkId{b}, false}});
      CHECK(route.latency.value == 1e-3);
      CHECK(route.bandwidth.value == 20e6);  // The slower adapter: one of any two devices is a Raspberry Pi.
    }
  CHECK(make_cluster("edge_lan", "{groups: {a: {type: h200}}, medium: {bandwidth: 1 MB/s}}").links.size() == 1);
  const Cluster radio =
      make_cluster("edge_lan",
                   "groups: [{name: pi, type: raspberry-pi-4, bandwidth: 20 MB/s}, {name: nano, type: jetson-nano}]\n"
                   "medium: {bandwidth: 50 MB/s, efficiency: 0.5, window: 1 MB}\n");
  CHECK(radio.links[LinkId{0}].bandwidth.value == 10e6);
  CHECK(radio.links[LinkId{1}].bandwidth.value == 25e6);
  CHECK(radio.links[LinkId{2}].window.value == 1e6);
  has(wrong_cluster("edge_lan", "{groups: {a: {type: h200, count: 0}}, medium: {bandwidth: 1 MB/s}}"),
      "groups.a.count");
  has(wrong_cluster("edge_lan", "{groups: {a: {type: h200}}, medium: {bandwidth: 0}}"), "medium.bandwidth");
  has(wrong_cluster("edge_lan", "{groups: {a: {type: h200, bandwidth: 0}}, medium: {bandwidth: 1 GB/s}}"), "bandwidth");
}

TEST_CASE("wan: sites have their links of pairs") {
  const std::string links =
      "links:\n  lan: {bandwidth: 1 GB/s, latency: 10 us}\n  wan: {bandwidth: 100 MB/s, latency: 20 ms}\n"
      "  sea: {bandwidth: 50 MB/s, latency: 80 ms}\n";
  const std::string sites =
      "sites: {a: {type: h200, devices: 2}, b: {type: v100-16, devices: 1}, c: {type: h200, devices: 3}}\n";
  const Cluster cluster = make_cluster("wan", sites + "pairs: [{between: [c, a], link: sea}]\n" + links);
  REQUIRE(cluster.devices.size() == 6);
  CHECK(cluster.links.size() == 6 + 3);
  const auto site = [](int d) { return d < 2 ? 0 : d < 3 ? 1 : 2; };
  check_routes(cluster, [&](int a, int b) { return site(a) == site(b) ? 2 : 3; });
  const Router router(cluster);
  CHECK(router.require(DeviceId{0}, DeviceId{2}).latency.value == doctest::Approx(0.02002));
  CHECK(router.require(DeviceId{5}, DeviceId{1}).latency.value == doctest::Approx(0.08002));
  CHECK(router.require(DeviceId{5}, DeviceId{1}).bandwidth.value == 50e6);
  CHECK(make_cluster("wan", "sites: {a: {type: h200, devices: 2}}\nlinks: {lan: {bandwidth: 1 GB/s}}\n").links.size() ==
        2);
  has(wrong_cluster("wan", sites + "links: {lan: {bandwidth: 1 GB/s}}\n"), "`links` has no entry 'wan'");
  has(wrong_cluster("wan", sites + "pairs: [{between: [a, d], link: sea}]\n" + links),
      "2: pairs[0].between[1]: no site is called 'd'");
  has(wrong_cluster("wan", sites + "pairs: [{between: [a, a], link: sea}]\n" + links), "a pair is two different sites");
  has(wrong_cluster("wan", sites + "pairs: [{between: [a, b], link: sea}, {between: [b, a], link: sea}]\n" + links),
      "pairs[1]: this pair has a link already");
}

TEST_CASE("random: clusters are drawn from the seed, within the bounds") {
  const auto make = [](int seed, const std::string& more) {
    return make_cluster("random",
                        fmt::format("{{devices: 200, seed: {}, kinds: [v100-16, h200], link: {{slowest: 1 GB/s, "
                                    "fastest: 3 GB/s, farthest: 1 ms}}{}}}",
                                    seed, more));
  };
  const Cluster cluster = make(7, ""), again = make(7, ""), other = make(8, "");
  const auto bandwidths = [](const Cluster& c) {
    std::vector<double> drawn;
    for (const Link& link : c.links) drawn.push_back(link.bandwidth.value);
    return drawn;
  };
  const auto types = [](const Cluster& c) {
    std::vector<DeviceTypeId> drawn;
    for (const Device& device : c.devices) drawn.push_back(device.type);
    return drawn;
  };
  CHECK(bandwidths(cluster) == bandwidths(again));
  CHECK(types(cluster) == types(again));
  CHECK(bandwidths(cluster) != bandwidths(other));
  CHECK(types(cluster) != types(other));
  CHECK(types(cluster) == types(make(7, ", network: dedicated")));
  CHECK(make(7, ", network: dedicated").links.size() == 200 * 199 / 2);
  double sum = 0;
  for (const Link& link : cluster.links) {
    CHECK(link.bandwidth.value >= 1e9);
    CHECK(link.bandwidth.value <= 3e9);
    CHECK(link.latency.value <= 1e-3);
    sum += link.bandwidth.value;
  }
  CHECK(sum / 200 == doctest::Approx(2e9).epsilon(0.1));  // Four standard errors are 8 %.
  const std::vector<DeviceTypeId> drawn = types(cluster);
  CHECK(std::count(drawn.begin(), drawn.end(), DeviceTypeId{0}) ==
        doctest::Approx(100).epsilon(0.3));  // Four standard errors are 28.
  check_routes(
      make_cluster("random",
                   "{devices: 9, kinds: [h200], network: dedicated, link: {slowest: 1 GB/s, fastest: 1 GB/s}}"),
      [](int, int) { return 1; });
}

TEST_CASE("random: problems are reported with their place") {
  const auto wrong = [](const std::string& link) {
    return wrong_cluster("random", "{devices: 3, kinds: [h200], link: {" + link + "}}");
  };
  has(wrong("slowest: 2 GB/s, fastest: 1 GB/s"), "link.fastest: it is below 'slowest'");
  has(wrong("slowest: 0, fastest: 1 GB/s"), "link.slowest: it has to be more than zero");
  has(wrong("slowest: 1 GB/s, fastest: 1 GB/s, nearest: 1 ms"), "link.farthest: it is below 'nearest'");
  has(wrong_cluster("random", "{devices: 3, kinds: [], link: {slowest: 1 GB/s, fastest: 1 GB/s}}"),
      "kinds: there is no");
  has(wrong_cluster("random", "{devices: 3, kinds: [h21], link: {slowest: 1 GB/s, fastest: 1 GB/s}}"),
      "kinds[0]: 'h21' is not");
}

TEST_CASE("networks of sixteen thousand devices are built and routed") {
  CHECK(fat_tree({16, 32, 32}).devices.size() == 16384);
  const Cluster tree = fat_tree({128, 128});
  CHECK(tree.devices.size() == 16384);
  CHECK(busiest(tree, [](int d) { return (d + 8192) % 16384; }) == 1);  // All over the top, and none in another's way.
  const Cluster grid = make_cluster("torus", "{sizes: [16, 32, 32], " + kType + kLink + "}");
  CHECK(Router(grid).require(DeviceId{0}, DeviceId{8 * 1024 + 16 * 32 + 16}).hops.size() == 2 + 8 + 16 + 16);
}

}  // namespace stagecraft::networks_test
