#include "backends/box/network.hpp"

#include <doctest/doctest.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "backends/box/commands.hpp"
#include "backends/box/link_changes.hpp"
#include "backends/real/clocks.hpp"
#include "sim/core/child_process.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/support/clusters.hpp"

namespace stagecraft::network_test {
namespace {

using box::Network;

/// The spaces that a packet visits, by the forwarding of each.
std::vector<int> way(const Network& network, int from, int to) {
  std::vector<int> visited{from};
  while (visited.back() != to && visited.size() < 20) {
    const box::Forwarding* best = nullptr;
    for (const box::Forwarding& f : network.forwarding)
      if (f.space == visited.back() && f.to == to && (f.from == from || (f.from < 0 && !best))) best = &f;
    REQUIRE(best);
    visited.push_back(network.cables[best->cable].spaces[1 - best->end]);
  }
  return visited;
}

const box::SharedQueue& queue_of(const Network& network, int space, const std::string& card) {
  const auto it = std::find_if(network.queues.begin(), network.queues.end(),
                               [&](const box::SharedQueue& q) { return q.space == space && q.card == card; });
  REQUIRE(it != network.queues.end());
  return *it;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::string refusal(const Cluster& cluster, const box::NetworkOptions& options = {}) try {
  box::network_of(cluster, {}, options);
  return {};
} catch (const Infeasible& e) {
  return e.what();
}

}  // namespace

TEST_CASE("a star: a cable for each device, and packets go through the switch") {
  const Cluster cluster = test::star(3, 5e6, 1e-3);
  const Network network = box::network_of(cluster, {}, {});
  CHECK(network.spaces.size() == 4);
  CHECK(network.cables.size() == 3);
  CHECK(way(network, 0, 2) == std::vector<int>{0, 3, 2});
  CHECK(way(network, 2, 1) == std::vector<int>{2, 3, 1});
  // Two flows leave each device, and two arrive.
  CHECK(queue_of(network, 0, "c0a").flows.size() == 2);
  CHECK(queue_of(network, 3, "c0b").flows.size() == 2);
}

TEST_CASE("devices that do not talk reach each other, but have no queue of their own") {
  const Cluster cluster = test::star(4, 5e6, 0);
  const Network network = box::network_of(cluster, {{DeviceId{0}, DeviceId{1}}}, {});
  CHECK(network.flows == std::vector<RouteEnds>{{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}});
  CHECK(way(network, 3, 2) == std::vector<int>{3, 4, 2});
  CHECK(queue_of(network, 3, "c3a").flows.empty());
}

TEST_CASE("PCIe that messages share with copies to hosts has no cable, and may not be slower than the network") {
  Cluster cluster = test::star(2, 5e6, 1e-3);
  cluster.memories.push_back({"host", Bytes{1e9}});
  for (Device& d : cluster.devices) {
    d.host_memory = 0;
    for (LinkId* const bus : {&d.bus_out, &d.bus_in})
      *bus = cluster.links.push_back({.name = "pcie", .bandwidth = Bandwidth{6e6}, .duplex = Duplex::Half});
  }
  const Network network = box::network_of(cluster, {}, {});
  CHECK(network.cables.size() == 2);
  CHECK(way(network, 0, 1) == std::vector<int>{0, 2, 1});
  cluster.links[cluster.devices[DeviceId{0}].bus_out].bandwidth = Bandwidth{4e6};
  CHECK(refusal(cluster).find("messages cross PCIe 'pcie', which is slower than the network") != std::string::npos);
}

TEST_CASE("all stations of a medium send through its one queue") {
  Cluster cluster = test::bare_cluster(3);
  test::connect(cluster, {0, 1, 2}, 5e6, 1e-3, Duplex::Half);
  const Network network = box::network_of(cluster, {}, {});
  REQUIRE(network.spaces.size() == 4);
  CHECK(network.spaces[3].kind == box::Space::Kind::Medium);
  CHECK(way(network, 0, 2) == std::vector<int>{0, 3, 2});
  CHECK(queue_of(network, 3, "ifb0").flows.size() == 6);
  for (const box::Cable& cable : network.cables) CHECK(cable.latency.value == doctest::Approx(0.5e-3));
  const std::string queues = box::queue_commands(network, 3);
  CHECK(has_line(queues, "qdisc add dev c1b ingress"));
  // 5 MB/s of payload, and half of an acknowledgement for each packet of 1514 bytes.
  CHECK(queues.find("rate 42734806bit") != std::string::npos);
}

TEST_CASE("routes from two devices that part at a switch have rules by source") {
  // d0 and d1 at switch 0; d2 behind two switches, one for each source by given routes.
  Cluster cluster = test::bare_cluster(3, 4);
  for (const auto& [a, b] : {std::pair{0, 3}, {1, 3}, {3, 4}, {3, 5}, {4, 6}, {5, 6}, {2, 6}})
    test::connect(cluster, {a, b}, 5e6, 0);
  const auto hops = [](const std::vector<int>& links) {
    std::vector<Hop> route;
    for (const int l : links) route.push_back({LinkId{l}, l != 6});
    return route;
  };
  cluster.routes = {{DeviceId{0}, DeviceId{2}, hops({0, 2, 4, 6})}, {DeviceId{1}, DeviceId{2}, hops({1, 3, 5, 6})}};
  const Network network = box::network_of(cluster, {}, {});
  CHECK(way(network, 0, 2) == std::vector<int>{0, 3, 4, 6, 2});
  CHECK(way(network, 1, 2) == std::vector<int>{1, 3, 5, 6, 2});
  CHECK(has_line(box::address_commands(network, 3), "rule add from 10.99.0.2 to 10.99.0.3 lookup 100"));
}

TEST_CASE("the scale divides rates and multiplies latencies") {
  const Network network = box::network_of(test::star(2, 5e9, 1e-6), {}, {box::Queue::Fair, 1000});
  CHECK(network.cables[0].rate.value == doctest::Approx(5e6));
  CHECK(network.cables[0].latency.value == doctest::Approx(1e-3));
}

TEST_CASE("queues: rates with headers; short packets first; one queue for all with fifo") {
  const Cluster cluster = test::star(2, 5e6, 0);
  const std::string fair = box::queue_commands(box::network_of(cluster, {}, {}), 0);
  CHECK(has_line(fair, "qdisc replace dev c0a root handle 1: htb default fff"));
  CHECK(fair.find("ceil 41823204bit") != std::string::npos);  // 5e6 x 8 x 1514 / 1448
  CHECK(fair.find("match u16 0x0000 0xff80 at 2 flowid 1:ffe") != std::string::npos);
  CHECK(fair.find("match ip src 10.99.0.1 match ip dst 10.99.0.2 flowid 1:2") != std::string::npos);
  const std::string fifo = box::queue_commands(box::network_of(cluster, {}, {box::Queue::Fifo, 1}), 0);
  CHECK(fifo == "qdisc replace dev c0a root tbf rate 41823204bit burst 3028 limit 4000000\n");
}

TEST_CASE("changes: times are scaled, and the classes of a card get other rates") {
  Cluster cluster = test::star(2, 5e6, 1e-4);
  cluster.changes = {{.links = {LinkId{0}}, .from = Seconds{1}, .until = Seconds{2}, .latency = 3}};
  const Network network = box::network_of(cluster, {}, {box::Queue::Fair, 10});
  CHECK(network.cluster.changes[0].from.value == 10);
  CHECK(network.cluster.changes[0].until.value == 20);
  CHECK(box::has_latency(network, network.cables[0]));
  const Network plain = box::network_of(cluster, {}, {});
  CHECK(box::has_latency(plain, plain.cables[0]));
  CHECK_FALSE(box::has_latency(plain, plain.cables[1]));
  const std::string text = box::rate_commands(plain, plain.queues[0], plain.queues[0].rate * 0.5);
  CHECK(text.find("class change dev c0a parent 1: classid 1:1 htb rate 20911602bit ceil 20911602bit") == 0);
  CHECK(text.find("classid 1:2 ") != std::string::npos);
  CHECK(text.find("qdisc") == std::string::npos);
}

TEST_CASE("links change at the moments that their changes say, from the begin on") {
  Cluster cluster = test::star(2, 5e6, 0);
  cluster.changes = {{.links = {LinkId{0}}, .from = Seconds{0.05}, .rate = 0.5}, {.links = {LinkId{1}}, .down = true}};
  const Network network = box::network_of(cluster, {}, {});
  const OpenFile begin(eventfd(1, EFD_CLOEXEC)), stop(eventfd(0, EFD_CLOEXEC));
  std::map<int, double> rates;
  double late = 0;
  const double origin = real::steady_seconds();
  box::apply_link_changes(network, begin.number(), stop.number(), [&](LinkId link, const Condition& condition) {
    rates[link.value] = condition.rate;
    if (link == LinkId{0}) late = real::steady_seconds() - origin;
    const std::uint64_t one = 1;
    if (rates.size() == 2) REQUIRE(write(stop.number(), &one, sizeof one) > 0);
  });
  CHECK(rates == std::map<int, double>{{0, 0.5}, {1, 0}});
  CHECK(late >= 0.05 - 1e-9);
}

TEST_CASE("a device with two links has its address on the first card") {
  Cluster cluster = test::bare_cluster(3);
  test::connect(cluster, {0, 1}, 5e6, 0);
  test::connect(cluster, {0, 2}, 5e6, 0);
  test::connect(cluster, {1, 2}, 5e6, 0);
  const Network network = box::network_of(cluster, {}, {});
  const std::string text = box::address_commands(network, 0);
  CHECK(has_line(text, "addr add 10.99.0.1/16 dev c0a noprefixroute"));
  CHECK(has_line(text, "addr add 10.98.0.2/32 dev c1a noprefixroute"));
}

TEST_CASE("what cannot be built is refused") {
  CHECK(refusal(test::star(65, 1e5, 0)).find("at most 64 devices") != std::string::npos);
  CHECK(refusal(test::star(4, 50e9, 0)).find("may send 200 GB/s together") != std::string::npos);
  CHECK(refusal(test::star(4, 50e9, 0), {box::Queue::Fair, 1e4}).empty());
  CHECK(refusal(test::star(2, 5e6, 0, Duplex::Unshared)).find("is unshared") != std::string::npos);
}

TEST_CASE("an unshared port in front of a narrower link is a cable without a limit") {
  Cluster cluster = test::bare_cluster(2, 2);
  test::connect(cluster, {0, 2}, 5e6, 0, Duplex::Unshared);
  test::connect(cluster, {2, 3}, 5e6, 0);
  test::connect(cluster, {1, 3}, 5e6, 0, Duplex::Unshared);
  const Network network = box::network_of(cluster, {}, {});
  CHECK(network.cables[0].rate.value == 0);
  CHECK(box::queue_commands(network, 0).empty());
  CHECK(way(network, 0, 1) == std::vector<int>{0, 2, 3, 1});
}

}  // namespace stagecraft::network_test
