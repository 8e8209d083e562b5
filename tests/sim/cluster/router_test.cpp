#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/patience.hpp"

namespace stagecraft::router_test {
using test::bare_cluster;
using test::connect;

namespace {

std::vector<int> links(const Cluster& cluster, int from, int to) {
  const auto route = Router(cluster).route(DeviceId{from}, DeviceId{to});
  if (!route) return {-1};
  std::vector<int> ids;
  for (const Hop& hop : route->hops) ids.push_back(hop.link.value);
  return ids;
}

using Ids = std::vector<int>;

}  // namespace

TEST_CASE("a device reaches itself over no link, and another over the switch") {
  const Cluster cluster = test::star(3, 1e9, 1e-6);
  const Router router(cluster);
  CHECK(router.route(DeviceId{1}, DeviceId{1})->hops.empty());
  const auto route = router.route(DeviceId{0}, DeviceId{2});
  REQUIRE(route);
  CHECK(route->hops == std::vector<Hop>{{LinkId{0}, true}, {LinkId{2}, false}});
  CHECK(route->latency.value == doctest::Approx(2e-6));
  CHECK(route->bandwidth.value == 1e9);
}

TEST_CASE("devices do not forward") {
  Cluster cluster = bare_cluster(3);
  connect(cluster, {0, 1}, 1e9, 0);
  connect(cluster, {1, 2}, 1e9, 0);
  CHECK(links(cluster, 0, 2) == Ids{-1});
  try {
    Router(cluster).require(DeviceId{0}, DeviceId{2});
    FAIL("a route was found");
  } catch (const Infeasible& error) {
    CHECK(error.code() == "route");
    CHECK(std::string(error.what()).find("'d0' to 'd2'") != std::string::npos);
  }
}

TEST_CASE("the fewest links win, however slow") {
  Cluster cluster = bare_cluster(2, 1);
  connect(cluster, {0, 2}, 1e12, 0);
  connect(cluster, {1, 2}, 1e12, 0);
  connect(cluster, {0, 1}, 1, 1);
  CHECK(links(cluster, 0, 1) == Ids{2});
}

TEST_CASE("among routes of equal length the least time per byte wins, then the links declared first") {
  Cluster cluster = bare_cluster(2, 3);
  for (int hub : {2, 3, 4}) {
    connect(cluster, {0, hub}, hub == 2 ? 1e9 : 2e9, 0);
    connect(cluster, {hub, 1}, 2e9, 0);
  }
  CHECK(links(cluster, 0, 1) == Ids{2, 3});
  CHECK(links(cluster, 1, 0) == Ids{3, 2});
  connect(cluster, {0, 2}, 9e9, 0);  // A second cable, faster, declared last.
  CHECK(links(cluster, 0, 1) == Ids{6, 1});
}

TEST_CASE("of equal direct cables the first one is taken") {
  Cluster cluster = bare_cluster(2);
  connect(cluster, {0, 1}, 1e9, 0);
  connect(cluster, {1, 0}, 1e9, 0);
  CHECK(links(cluster, 0, 1) == Ids{0});
  CHECK(links(cluster, 1, 0) == Ids{0});
}

TEST_CASE("a shared medium is one hop without directions, and reaches a switch") {
  Cluster cluster = bare_cluster(4, 1);
  connect(cluster, {0, 1, 4}, 1e6, 1e-3, Duplex::Half);
  connect(cluster, {4, 2}, 1e9, 0);
  connect(cluster, {4, 3}, 1e9, 0);
  const Router router(cluster);
  CHECK(router.route(DeviceId{1}, DeviceId{0})->hops == std::vector<Hop>{{LinkId{0}, true}});
  CHECK(router.route(DeviceId{1}, DeviceId{2})->hops == std::vector<Hop>{{LinkId{0}, true}, {LinkId{1}, true}});
  CHECK(router.route(DeviceId{2}, DeviceId{1})->hops == std::vector<Hop>{{LinkId{1}, false}, {LinkId{0}, true}});
  CHECK(router.route(DeviceId{1}, DeviceId{2})->bandwidth.value == 1e6);
}

TEST_CASE("a long link counts as several") {
  Cluster cluster = bare_cluster(2, 2);
  connect(cluster, {0, 2}, 1e9, 0);
  connect(cluster, {2, 3}, 1e9, 0);
  connect(cluster, {3, 1}, 1e9, 0);
  connect(cluster, {0, 1}, 1e9, 0);
  cluster.links[LinkId{3}].length = 4;
  CHECK(links(cluster, 0, 1) == Ids{0, 1, 2});
  cluster.links[LinkId{3}].length = 3;
  CHECK(links(cluster, 0, 1) == Ids{3});  // As long, and less time per byte.
  cluster.links[LinkId{1}].length = 2;
  CHECK(links(cluster, 1, 0) == Ids{3});
}

TEST_CASE("targets take turns on equal links") {
  Cluster cluster = bare_cluster(8, 4);  // Two leaves with four devices each below two spines.
  for (int d = 0; d < 8; ++d) connect(cluster, {d, 8 + d / 4}, 1e9, 0);
  for (int leaf : {8, 9})
    for (int spine : {10, 11}) connect(cluster, {leaf, spine}, 1e9, 0);
  for (int target : {4, 5, 6, 7}) CHECK(links(cluster, 0, target) == Ids{0, 8, 10, target});
  cluster.turns = {0, 1, 2, 3, 4, 5, 6, 7};
  for (int target : {4, 6}) CHECK(links(cluster, 0, target) == Ids{0, 8, 10, target});
  for (int target : {5, 7}) CHECK(links(cluster, 0, target) == Ids{0, 9, 11, target});
  CHECK(links(cluster, 5, 4) == Ids{5, 4});
  connect(cluster, {10, 9}, 1e9, 0);  // A second cable from the first spine to the second leaf has its own turns.
  CHECK(links(cluster, 0, 4) == Ids{0, 8, 10, 4});
  CHECK(links(cluster, 0, 6) == Ids{0, 8, 12, 6});
  connect(cluster, {4, 9}, 2e9, 0);  // A better route does not take turns with a worse one.
  CHECK(links(cluster, 0, 4) == Ids{0, 8, 10, 13});
}

// All simple paths over switches, compared by (length, time per byte, links declared first).
namespace {

struct Path {
  int length = 0;
  double cost = 0;
  Ids ids;
  friend auto operator<=>(const Path&, const Path&) = default;
};

void walk(const Cluster& cluster, int at, int target, Path path, std::vector<bool> seen, std::vector<Path>& paths) {
  for (const LinkId l : cluster.links.ids()) {
    const auto& ends = cluster.links[l].ends;
    if (std::find(ends.begin(), ends.end(), VertexId{at}) == ends.end()) continue;
    for (VertexId end : ends) {
      if (seen[end.value]) continue;
      Path longer = path;
      longer.length += cluster.links[l].length;
      longer.cost += 1e9 / cluster.links[l].bandwidth.value;
      longer.ids.push_back(l.value);
      if (end == VertexId{target}) {
        paths.push_back(longer);
      } else if (!cluster.devices.contains(DeviceId{end.value})) {
        auto visited = seen;
        visited[end.value] = true;
        walk(cluster, end.value, target, longer, visited, paths);
      }
    }
  }
}

}  // namespace

TEST_CASE("random graphs: the route is the best of all paths") {
  Rng rng(7, "router");
  for (int round = 0; round < 600; ++round) {
    const int devices = rng.integer(2, 4), switches = rng.integer(0, 4), places = devices + switches;
    Cluster cluster = bare_cluster(devices, switches);
    for (int l = rng.integer(1, 9); l > 0; --l) {
      std::vector<int> ends{rng.integer(0, places - 1)};
      for (int e = rng.integer(0, 3) == 0 ? 2 : 1; e > 0; --e) {
        const int end = rng.integer(0, places - 1);
        if (std::find(ends.begin(), ends.end(), end) == ends.end()) ends.push_back(end);
      }
      if (ends.size() > 1) connect(cluster, ends, rng.integer(0, 1) ? 1e9 : 2e9, 0);
      if (ends.size() > 1 && round >= 300) cluster.links.back().length = rng.integer(1, 4);
    }
    for (int a = 0; a < devices; ++a) {
      for (int b = 0; b < devices; ++b) {
        if (a == b) continue;
        std::vector<Path> paths;
        std::vector<bool> seen(static_cast<std::size_t>(places));
        seen[a] = true;
        walk(cluster, a, b, {}, seen, paths);
        CHECK(links(cluster, a, b) == (paths.empty() ? Ids{-1} : std::min_element(paths.begin(), paths.end())->ids));
      }
    }
  }
}

TEST_CASE("random graphs: a route does not depend on earlier queries") {
  Rng rng(8, "router, again");
  std::size_t far = 0;
  for (int round = 0; round < 200; ++round) {
    const int devices = rng.integer(3, 8), switches = rng.integer(2, 6);
    Cluster cluster = bare_cluster(devices, switches);
    for (int d = 0; d < devices; ++d)  // Mostly one link to one switch, sometimes a second one or a medium.
      for (int l = rng.integer(0, 5) == 0 ? 2 : 1; l > 0; --l)
        connect(cluster, {d, devices + rng.integer(0, switches - 1)}, 1e9, 0);
    for (int l = rng.integer(1, 12); l > 0; --l) {
      const int from = rng.integer(0, switches - 1), to = rng.integer(0, switches - 1);
      if (from != to) connect(cluster, {devices + from, devices + to}, rng.integer(0, 3) ? 1e9 : 2e9, 0);
      if (from != to && rng.integer(0, 4) == 0) cluster.links.back().length = rng.integer(1, 3);
    }
    if (round % 2)
      for (int d = 0; d < devices; ++d) cluster.turns.push_back(static_cast<std::size_t>(d));
    const Router cached(cluster);
    for (int pair = 0; pair < 40; ++pair) {
      const DeviceId from{rng.integer(0, devices - 1)}, to{rng.integer(0, devices - 1)};
      const auto again = cached.route(from, to), fresh = Router(cluster).route(from, to);
      REQUIRE(again.has_value() == fresh.has_value());
      if (fresh) CHECK(again->hops == fresh->hops);
      far += fresh && fresh->hops.size() > 3;
    }
  }
  CHECK(far > 500);  // Else hardly anything was found out on the way.
}

TEST_CASE("a star of 16,384 devices is routed without walking its links") {
  const int devices = 16384;
  const Cluster cluster = test::star(devices, 1e9, 1e-6);
  const Router router(cluster);
  const double start = test::thread_seconds();
  std::size_t hops = 0;
  for (int d = 0; d + 1 < devices; ++d) hops += router.route(DeviceId{d}, DeviceId{d + 1})->hops.size();
  const double took = test::thread_seconds() - start;
  CHECK(hops == 2 * (devices - 1));
  CHECK(took < 1.0);  // 270 million steps if every route walked every link.
}

}  // namespace stagecraft::router_test
