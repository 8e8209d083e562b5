// Links with one queue: times that follow by hand from first come, first served.

#include "backends/fluid/queues.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "backends/backend.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::backends {
extern const BackendDef fluid;
}

namespace stagecraft::queues_test {
namespace {

using fluid::kChunkBytes;
using test::ProgramBuilder;

constexpr double kRate = 12.5e6, kSlow = 5e6;  ///< Bytes a second: 100 and 40 Mbit/s.
constexpr std::uint64_t kBytes = 100 * static_cast<std::uint64_t>(kChunkBytes);

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

Cluster with_one_queue(Cluster cluster) {
  for (Link& link : cluster.links) link.one_queue = true;
  return cluster;
}

/// Three devices at a switch; the card of device 1 is slow.
Cluster slow_star(double latency = 0) {
  Cluster cluster = with_one_queue(test::star(3, kRate, latency));
  cluster.links[LinkId{1}].bandwidth = Bandwidth{kSlow};
  return cluster;
}

Timeline run(const Program& program, const Cluster& cluster) { return backends::fluid.run(program, cluster, {}); }

/// The network of a cluster without a program: when each message comes.
class Messages {
 public:
  explicit Messages(const Cluster& cluster, bool acknowledged = false) {
    const Router router(cluster);
    std::vector<std::int32_t> back;
    for (const DeviceId from : cluster.devices.ids())
      for (const DeviceId to : cluster.devices.ids()) {
        if (from == to) continue;
        index_[{from.value, to.value}] = static_cast<std::int32_t>(routes_.size());
        routes_.push_back(router.require(from, to));
      }
    for (const auto& [pair, index] : index_) back.push_back(acknowledged ? index_.at({pair.second, pair.first}) : -1);
    queues_.emplace_back(cluster, routes_, back);
  }

  void send(int number, int from, int to, std::uint64_t bytes, double at) {
    run_until(at);
    queues_[0].add(number, index_.at({from, to}), bytes, kInfinity, at);
  }
  double came(int number) {
    run_until(kInfinity);
    return came_.at(number);
  }

 private:
  void run_until(double until) {
    for (double next; (next = queues_[0].next_time()) < until;)
      for (const int number : queues_[0].advance(next)) came_[number] = next;
  }

  std::vector<Route> routes_;
  std::map<std::pair<int, int>, std::int32_t> index_;
  std::vector<fluid::Queues> queues_;
  std::map<int, double> came_;
};

}  // namespace

TEST_CASE("a message alone takes as long as with fair sharing, whichever link is slow") {
  for (const std::pair<int, int>& ends : {std::pair{0, 1}, {1, 2}, {0, 2}}) {
    for (const double window : {0.0, 40e3}) {
      CAPTURE(ends.first);
      CAPTURE(window);
      ProgramBuilder builder(3);
      builder.send(ends.first, ends.second, kBytes + 17);
      Cluster cluster = slow_star(2e-3);
      for (Link& link : cluster.links) link.window = Bytes{window};
      Cluster fair = cluster;
      for (Link& link : fair.links) link.one_queue = false;
      CHECK(run(builder.build(), cluster).last_end().value == near(run(builder.build(), fair).last_end().value));
    }
  }
}

TEST_CASE("two messages that come together take turns by chunk; a later one waits for what is there") {
  Messages together(with_one_queue(test::star(3, kRate, 0)));
  together.send(0, 0, 2, kBytes, 0);
  together.send(1, 1, 2, kBytes, 0);
  CHECK(together.came(0) == near((2 * kBytes - kChunkBytes) / kRate));
  CHECK(together.came(1) == near(2 * kBytes / kRate));

  // Fair sharing would let the second one, which is a tenth as long, pass.
  const Cluster cluster = slow_star();
  Messages later(cluster);
  later.send(0, 0, 1, kBytes, 0);
  later.send(1, 2, 1, kBytes / 10, kBytes / kRate);
  CHECK(later.came(0) == near(kBytes / kSlow));
  CHECK(later.came(1) == near(1.1 * kBytes / kSlow));
}

TEST_CASE("a word waits for the bytes that came faster than they leave") {
  Messages messages(slow_star());
  messages.send(0, 0, 1, kBytes, 0);
  // 61 chunks have come at 12.5 MB/s and leave at 5 MB/s.
  messages.send(1, 2, 1, 0, 60.5 * kChunkBytes / kRate);
  CHECK(messages.came(1) == near(61 * kChunkBytes / kSlow));
  CHECK(messages.came(0) == near(kBytes / kSlow));
}

TEST_CASE("a window keeps the queue short") {
  Cluster cluster = slow_star();
  for (Link& link : cluster.links) link.window = Bytes{8 * kChunkBytes};
  Messages messages(cluster);
  messages.send(0, 0, 1, kBytes, 0);
  messages.send(1, 2, 1, 0, 60.5 * kChunkBytes / kSlow);
  // Eight chunks are under way, and the first of them has been on the slow link for half of its time.
  CHECK(messages.came(1) == near(68 * kChunkBytes / kSlow));
  CHECK(messages.came(0) == near(kBytes / kSlow));
}

TEST_CASE("a card has a part of its device's message, and a word waits for that part") {
  Messages messages(with_one_queue(test::star(3, kRate, 0)));
  messages.send(0, 0, 1, kBytes, 0);
  const double at_card = std::floor(std::sqrt(kBytes * kRate / 256) / kChunkBytes);  // 29 chunks of 100.
  messages.send(1, 0, 2, 0, 10.5 * kChunkBytes / kRate);
  CHECK(messages.came(1) == near((10 + at_card) * kChunkBytes / kRate));
}

TEST_CASE("acknowledgements take 2.2 % of the other direction, and nothing of a medium") {
  Messages messages(with_one_queue(test::star(2, kRate, 0)), true);
  messages.send(0, 0, 1, kBytes, 0);
  messages.send(1, 1, 0, kBytes, 0);
  const double without = kBytes / kRate, more = messages.came(1) / without - 1;
  // The last 30 acknowledgements may come after the message: one for a chunk that is sent, and 29 at the card.
  CHECK(more > 0.7 * 33 / 1514);
  CHECK(more < 33.0 / 1514 + 1e-9);

  Messages medium(with_one_queue(test::star(2, kRate, 0, Duplex::Half)), true);
  medium.send(0, 0, 1, kBytes, 0);
  CHECK(medium.came(0) == near(kBytes / kRate));
}

TEST_CASE("other links in such a network serve messages in turn, and words first") {
  Cluster cluster = slow_star();
  cluster.links[LinkId{1}].one_queue = false;
  Messages messages(cluster);
  messages.send(0, 0, 1, kBytes, 0);
  messages.send(1, 2, 1, kBytes / 10, kBytes / kRate);
  messages.send(2, 0, 1, 0, kBytes / kRate);
  CHECK(std::abs(messages.came(1) - (kBytes / kRate + 0.2 * kBytes / kSlow)) < 3 * kChunkBytes / kSlow);
  CHECK(messages.came(2) < kBytes / kRate + 2 * kChunkBytes / kSlow);
  CHECK(messages.came(0) == near(1.1 * kBytes / kSlow));
}

TEST_CASE("a port sends other messages while the bytes of a slow one come") {
  Cluster cluster = test::star(3, kRate, 0);
  cluster.links[LinkId{0}].bandwidth = Bandwidth{1e6};
  cluster.links[LinkId{0}].one_queue = true;
  for (const bool has_one_queue : {false, true}) {  // The port of the receiver, device 1.
    CAPTURE(has_one_queue);
    cluster.links[LinkId{1}].one_queue = has_one_queue;
    Messages messages(cluster);
    messages.send(0, 0, 1, 1'000'000, 0);
    messages.send(1, 2, 1, 10'000'000, 0);
    // What the slow message leaves of 12.5 MB/s; in one queue each has its share of the 13.5 MB/s that come.
    const double rate = has_one_queue ? kRate * 12.5 / 13.5 : 11.5e6;
    CHECK(messages.came(1) == doctest::Approx(10e6 / rate).epsilon(2e-3));
    CHECK(messages.came(0) == doctest::Approx(1).epsilon(2e-3));
  }
}

TEST_CASE("a long message with a low rate is simulated with one event for each step of a chunk") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 1'000'000'000);
  Cluster cluster = with_one_queue(test::star(2, kRate, 5e-3));
  for (Link& link : cluster.links) link.window = Bytes{65536};
  // A window in each round trip over two links and back.
  RunOptions options;
  options.timeout = Seconds{100};
  const Timeline t = backends::fluid.run(builder.build(), cluster, options);
  CHECK(t.last_end().value == doctest::Approx(0.01 + 1e9 / (65536 / 0.02)).epsilon(1e-9));
}

TEST_CASE("words of a handshake wait, and without one they take no time") {
  ProgramBuilder builder(3);
  builder.send(0, 1, kBytes);                             // Fills the queue of device 1.
  const test::Message back = builder.send(1, 2, kBytes);  // Its words come to device 1, too.
  for (const bool handshakes : {false, true}) {
    Program program = builder.build();
    program.handshakes = handshakes;
    const Timeline t = run(program, slow_star());
    CHECK(t.end[back.receive] >= kBytes / kSlow);
    CHECK((t.end[back.send] > t.end[back.receive]) == handshakes);
  }
}

TEST_CASE("a link that changes has its new rate for the chunks that follow") {
  ProgramBuilder builder(2);
  builder.send(0, 1, kBytes);
  Cluster cluster = with_one_queue(test::star(2, kRate, 0));
  Change change;
  change.links = {LinkId{0}};
  change.from = Seconds{50 * kChunkBytes / kRate};
  change.rate = 0.5;
  cluster.changes.push_back(change);
  CHECK(std::abs(run(builder.build(), cluster).last_end().value - 150 * kChunkBytes / kRate) < 2 * kChunkBytes / kRate);
}

TEST_CASE("random messages: no port sends more than its bandwidth, no message is faster than alone") {
  Rng rng(7, "queues");
  const auto draw = [&](int low, int high) { return rng.integer(low, high); };
  for (int trial = 0; trial < 40; ++trial) {
    const int devices = draw(2, 6);
    Cluster cluster = with_one_queue(test::star(devices, kRate, 1e-4, draw(0, 2) == 0 ? Duplex::Half : Duplex::Full));
    for (Link& link : cluster.links) link.bandwidth = Bandwidth{1e6 * draw(1, 20)};
    ProgramBuilder builder(devices);
    std::vector<double> out(devices), in(devices);
    for (int m = draw(1, 20); m > 0; --m) {
      const int from = draw(0, devices - 1), to = (from + draw(1, devices - 1)) % devices, bytes = draw(1, 400'000);
      builder.send(from, to, static_cast<std::uint64_t>(bytes));
      out[from] += bytes, in[to] += bytes;
    }
    Program program = builder.build();
    program.handshakes = draw(0, 1) == 1;
    const Timeline t = run(program, cluster), again = run(program, cluster);
    const Router router(cluster);
    for (const Transfer& transfer : program.transfers) {
      const auto [from, to] = program.routes[program.shape(transfer).route];
      const Route route = router.require(from, to);
      const double alone = route.latency.value + static_cast<double>(program.bytes(transfer)) / route.bandwidth.value;
      CHECK(t.end[transfer.receive] - t.start[transfer.send] >= alone * (1 - 1e-9));
      CHECK(t.end[transfer.receive] == again.end[transfer.receive]);
    }
    for (int d = 0; d < devices; ++d) {
      const Link& link = cluster.links[LinkId{d}];
      const double bytes = link.duplex == Duplex::Half ? out[d] + in[d] : std::max(out[d], in[d]);
      CHECK(t.last_end().value >= bytes / link.bandwidth.value);
    }
  }
}

TEST_CASE("a message over a route in one direction needs a route back for the words of a handshake alone") {
  ProgramBuilder builder(2);
  builder.send(0, 1, kBytes);
  Cluster cluster = test::bare_cluster(2);
  test::connect(cluster, {}, kRate, 0, Duplex::Half);
  cluster = with_one_queue(cluster);
  cluster.routes.push_back({DeviceId{0}, DeviceId{1}, {{LinkId{0}, true}}});
  Program program = builder.build();
  CHECK(run(program, cluster).last_end().value == near(kBytes / kRate));
  program.handshakes = true;
  CHECK_THROWS_AS(run(program, cluster), Infeasible);
}

TEST_CASE("what has no queues here is refused") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 1'000'000'000'000);
  CHECK_THROWS_AS(run(builder.build(), with_one_queue(test::star(2, kRate, 0))), Infeasible);
  ProgramBuilder small(2);
  small.send(0, 1, 1000);
  Cluster cluster = with_one_queue(test::star(2, kRate, 0));
  Cluster unshared = cluster;
  unshared.links[LinkId{1}].duplex = Duplex::Unshared;
  CHECK_NOTHROW(run(small.build(), unshared));
  Change change;
  change.links = {LinkId{1}};
  change.rate = 0.5;
  unshared.changes.push_back(change);
  CHECK_THROWS_AS(run(small.build(), unshared), Infeasible);
  for (Device& d : cluster.devices) d.memory = LinkId{0};
  CHECK_THROWS_AS(run(small.build(), cluster), Infeasible);
}

}  // namespace stagecraft::queues_test
