#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/cluster/phases.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/support/clusters.hpp"

namespace stagecraft::phases_test {
using namespace stagecraft::collective_algorithms;
using Algorithm = CollectiveAlgorithm;
using Kind = CollectiveKind;

namespace {

const Algorithm* const kModeled[] = {&ring, &tree, &hierarchical, &direct};

constexpr double kAlpha = 3e-6, kRate = 2e9;  // A message between two cards of the star pays two halves of the latency.
constexpr std::uint64_t kBytes = 1'441'440;   // Every number up to 16 divides it.
constexpr double kS = kBytes / kRate;

/// `sizes` devices on the nodes, in the order of the nodes.
DeviceGroup group(const std::vector<int>& sizes) {
  DeviceGroup result;
  for (std::size_t n = 0; n < sizes.size(); ++n)
    for (int d = 0; d < sizes[n]; ++d) {
      result.devices.emplace_back(static_cast<std::int64_t>(result.devices.size()));
      result.nodes.push_back(static_cast<int>(n));
    }
  return result;
}

double seconds(Kind kind, const Algorithm& algorithm, const DeviceGroup& g) {
  const Cluster cluster = test::star(static_cast<int>(g.devices.size()), kRate, kAlpha / 2);
  return time_of(phases_of(kind, algorithm, g, kBytes), LinkTable(cluster)).value;
}

std::vector<std::vector<int>> groups() {
  return {{1}, {2}, {3}, {5}, {8}, {1, 1}, {2, 2}, {4, 4, 4}, {3, 1}, {1, 2, 5}};
}

/// Textbook formulas for equal links; empty if the algorithm does not support the collective.
std::optional<double> by_hand(Kind kind, const Algorithm& algorithm, const std::vector<int>& sizes) {
  const double N = static_cast<double>(sizes.size()), G = sizes.front();
  double n = 0;
  bool equal = true;
  for (const int size : sizes) n += size, equal = equal && size == sizes.front();
  const double steps = n - 1, part = kS / n, levels = std::ceil(std::log2(n));
  const double inner = (G - 1) * (kAlpha + kS / G), outer = (N - 1) * (kAlpha + kS / n);
  const bool all_reduce = kind == Kind::AllReduce;
  if (n == 1) return 0.0;
  if (&algorithm == &ring) {
    if (kind == Kind::Broadcast) return steps * kAlpha + kS;
    if (kind == Kind::AllToAll) return steps * kAlpha + steps / 2 * kS;
    return (all_reduce ? 2 : 1) * steps * (kAlpha + part);
  }
  if (&algorithm == &tree) {
    if (all_reduce) return 2 * levels * (kAlpha + kS);
    return kind == Kind::Broadcast ? std::optional(levels * (kAlpha + kS)) : std::nullopt;
  }
  if (&algorithm == &hierarchical) {
    if (!equal) return std::nullopt;
    if (kind == Kind::Broadcast) return (N > 1 ? (N - 1) * kAlpha + kS : 0) + (G > 1 ? (G - 1) * kAlpha + kS : 0);
    if (kind == Kind::AllToAll)
      return (G > 1 ? kAlpha + (G - 1) / G * kS : 0) + (N > 1 ? kAlpha + (N - 1) / N * kS : 0);
    return (all_reduce ? 2 : 1) * (inner + outer);
  }
  if (&algorithm == &direct) {
    if (kind == Kind::Broadcast) return kAlpha + steps * kS;
    return (all_reduce ? 2 : 1) * (kAlpha + steps * part);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("on equal links each collective takes the time of its formula") {
  int compared = 0;
  for (const Kind kind : kCollectiveKinds)
    for (const Algorithm* algorithm : kModeled)
      for (const std::vector<int>& sizes : groups()) {
        CAPTURE(name(kind));
        CAPTURE(std::string(algorithm->name));
        CAPTURE(sizes.size());
        CAPTURE(sizes.front());
        const std::optional<double> expected = by_hand(kind, *algorithm, sizes);
        if (expected) {
          CHECK(seconds(kind, *algorithm, group(sizes)) == doctest::Approx(*expected).epsilon(1e-12));
          ++compared;
        } else {
          CHECK_THROWS_AS(phases_of(kind, *algorithm, group(sizes), kBytes), InputError);
        }
      }
  CHECK(compared == 10 * (5 + 2 + 5) + 8 * 5 + 3);  // A group of one has no phases, whatever the algorithm.
}

TEST_CASE("a ring all-reduce has one phase of 2(n-1) latencies and 2(n-1)/n of the bytes, rounded") {
  for (const auto& [bytes, members, moved] : std::vector<std::tuple<std::uint64_t, int, std::uint64_t>>{
           {100, 2, 100}, {100, 3, 133}, {7, 4, 11}, {1'000'000'000'000'000, 16384, 1'999'877'929'687'500}}) {
    const std::vector<Phase> phases = phases_of(Kind::AllReduce, ring, group({members}), bytes);
    REQUIRE(phases.size() == 1);
    CHECK(phases[0].latencies == 2 * (members - 1));
    CHECK(phases[0].bytes == moved);
    REQUIRE(static_cast<int>(phases[0].routes.size()) == members);
    for (int m = 0; m < members; ++m) CHECK(phases[0].routes[m] == RouteEnds{DeviceId{m}, DeviceId{(m + 1) % members}});
  }
}

TEST_CASE("no device sends or receives on two routes of a phase") {
  for (const Kind kind : kCollectiveKinds)
    for (const Algorithm* algorithm : kModeled)
      for (const std::vector<int>& sizes : groups()) {
        if (!by_hand(kind, *algorithm, sizes)) continue;
        for (const Phase& phase : phases_of(kind, *algorithm, group(sizes), kBytes)) {
          std::set<DeviceId> from, to;
          for (const RouteEnds& r : phase.routes) {
            CHECK(r.from != r.to);
            CHECK(from.insert(r.from).second);
            CHECK(to.insert(r.to).second);
          }
        }
      }
}

TEST_CASE("a direct exchange joins each ordered pair once, and crosses nodes as rarely as it can") {
  const DeviceGroup g = group({3, 3});
  std::map<std::pair<DeviceId, DeviceId>, int> pairs;
  int crossing = 0;
  const std::vector<Phase> phases = phases_of(Kind::AllToAll, direct, g, kBytes);
  for (const Phase& phase : phases) {
    bool crosses = false;
    for (const RouteEnds& r : phase.routes) {
      ++pairs[{r.from, r.to}];
      crosses = crosses || g.nodes[r.from.value] != g.nodes[r.to.value];
    }
    crossing += crosses;
  }
  CHECK(pairs.size() == 6 * 5);
  for (const auto& [pair, count] : pairs) CHECK(count == 1);
  CHECK(phases.size() == 5);
  CHECK(crossing == 3);
}

TEST_CASE("a broadcast reaches every member from the first, after a member that has the data") {
  for (const Algorithm* algorithm : kModeled)
    for (const std::vector<int>& sizes : groups()) {
      if (!by_hand(Kind::Broadcast, *algorithm, sizes)) continue;
      const DeviceGroup g = group(sizes);
      std::set<DeviceId> have{DeviceId{0}};
      for (const Phase& phase : phases_of(Kind::Broadcast, *algorithm, g, kBytes))
        for (const RouteEnds& r : phase.routes) {  // Along a chain the routes come in order.
          CHECK(have.count(r.from) == 1);
          CHECK(have.insert(r.to).second);
        }
      CHECK(have.size() == g.devices.size());
    }
}

TEST_CASE("hierarchical collectives keep bytes within nodes where they can") {
  const DeviceGroup g = group({4, 4});
  const std::vector<Phase> phases = phases_of(Kind::AllReduce, hierarchical, g, 800);
  REQUIRE(phases.size() == 3);
  const std::uint64_t bytes[] = {600, 200, 600};
  for (int p = 0; p < 3; ++p) {
    CHECK(phases[p].bytes == bytes[p]);
    for (const RouteEnds& r : phases[p].routes) CHECK((g.nodes[r.from.value] == g.nodes[r.to.value]) == (p != 1));
  }
}

TEST_CASE("the slowest route of a phase decides its latency and its bandwidth") {
  Cluster cluster = test::bare_cluster(3);
  test::connect(cluster, {0, 1}, 1e9, 5e-6);
  test::connect(cluster, {1, 2}, 2e9, 7e-6);
  test::connect(cluster, {2, 0}, 4e9, 1e-6);
  const LinkTable links(cluster);
  const std::vector<Phase> phases = phases_of(Kind::AllGather, ring, group({3}), 3'000'000);
  CHECK(time_of(phases, links).value == doctest::Approx(2 * 7e-6 + 2e6 / 1e9));
  CHECK(links.message_time(DeviceId{1}, DeviceId{2}, Bytes{2e6}).value == doctest::Approx(7e-6 + 1e-3));
  CHECK(links.message_time(DeviceId{1}, DeviceId{1}, Bytes{2e6}).value == 0);
  CHECK(links.bandwidth(DeviceId{2}, DeviceId{0}).value == 4e9);
}

TEST_CASE("the algorithm is direct for all-to-all, hierarchical for equal nodes, else a ring") {
  CHECK(choose_algorithm(Kind::AllToAll, group({2, 2})).name == "direct");
  CHECK(choose_algorithm(Kind::AllReduce, group({2, 2})).name == "hierarchical");
  CHECK(choose_algorithm(Kind::AllGather, group({4, 4, 4})).name == "hierarchical");
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{8}, {1, 1, 1}, {3, 1}})
    CHECK(choose_algorithm(Kind::AllReduce, group(sizes)).name == "ring");
}

TEST_CASE("devices of one host are on one node, and devices without a host are alone") {
  Cluster cluster = test::bare_cluster(5);
  const char* const hosts[] = {"a", "b", "a", "", ""};
  for (int d = 0; d < 5; ++d) cluster.devices[DeviceId{d}].host = hosts[d];
  const DeviceGroup g = group_of({DeviceId{4}, DeviceId{0}, DeviceId{2}, DeviceId{1}, DeviceId{3}}, cluster);
  CHECK(g.nodes == std::vector<int>{0, 1, 1, 2, 3});
  CHECK(node_of(cluster) == std::vector<int>{0, 1, 0, 2, 3});
  CHECK(most_on_a_node(g.devices, cluster) == 2);
  CHECK(most_on_a_node({DeviceId{3}, DeviceId{4}}, cluster) == 1);
  for (const DeviceId a : g.devices)
    for (const DeviceId b : g.devices)
      CHECK(cluster.on_one_node(a, b) == (node_of(cluster)[a.value] == node_of(cluster)[b.value]));
}

TEST_CASE("NVLS is refused until its times are modeled") {
  CHECK_THROWS_WITH_AS(phases_of(Kind::AllReduce, nvls, group({8}), kBytes),
                       doctest::Contains("the NVLS algorithm cannot run all_reduce"), InputError);
  CHECK(phases_of(Kind::AllReduce, nvls, group({1}), kBytes).empty());
}

}  // namespace stagecraft::phases_test
