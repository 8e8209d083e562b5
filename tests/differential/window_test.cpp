// Windows limit messages alike on every simulator: at most the smallest window of the route in each round trip.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "sim/cluster/link_table.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/random_changes.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::window_test {
namespace {

constexpr const char* kSimulators[] = {"ideal", "fluid", "simgrid"};

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

/// A round trip of 20 ms.
Cluster far_star(int devices, double bandwidth) { return test::star(devices, bandwidth, 5e-3); }

Program messages_to(int last, int senders) {
  test::ProgramBuilder builder(last + 1);
  for (int d = 0; d < senders; ++d) builder.send(d, last, 3'200'000);
  return builder.build();
}

}  // namespace

TEST_CASE("64 kB in each round trip of 20 ms are 3.2 MB/s on every simulator") {
  Cluster cluster = far_star(2, 1e9);
  cluster.links[LinkId{0}].window = Bytes{1e6};
  cluster.links[LinkId{1}].window = Bytes{64e3};
  for (const char* backend : kSimulators) {
    CAPTURE(backend);
    CHECK(run(backend, messages_to(1, 1), cluster).last_end().value == near(0.01 + 1));
  }
  const LinkTable links(cluster);
  CHECK(links.bandwidth(DeviceId{0}, DeviceId{1}).value == near(3.2e6));
  CHECK(links.message_time(DeviceId{1}, DeviceId{0}, Bytes{6.4e6}).value == near(2.01));
}

TEST_CASE("a window without a latency, or above what the links carry, limits nothing") {
  Cluster at_once = test::star(2, 3.2e6, 0), wide = far_star(2, 3.2e6);
  at_once.links[LinkId{0}].window = Bytes{1};
  wide.links[LinkId{0}].window = Bytes{65e3};
  for (const char* backend : kSimulators) {
    CAPTURE(backend);
    CHECK(run(backend, messages_to(1, 1), at_once).last_end().value == near(1));
    CHECK(run(backend, messages_to(1, 1), wide).last_end().value == near(1.01));
  }
}

TEST_CASE("what a window leaves of a shared link goes to the others") {
  Cluster cluster = far_star(3, 4e6);
  cluster.links[LinkId{0}].window = Bytes{20e3};  // 1 MB/s.
  for (const char* backend : {"fluid", "simgrid"}) {
    CAPTURE(backend);
    const Timeline t = run(backend, messages_to(2, 2), cluster);
    CHECK(t.end[InstructionId{0}] == near(0.01 + 3.2));
    CHECK(t.end[InstructionId{2}] == near(0.01 + 3.2 / 3));
  }
}

TEST_CASE("a link that slows down may limit a message more than its window, and then no longer") {
  Cluster cluster = far_star(2, 6.4e6);
  cluster.links[LinkId{0}].window = Bytes{64e3};
  Change slow;
  slow.links = {LinkId{1}};
  slow.from = Seconds{0.51};
  slow.until = Seconds{1.01};
  slow.rate = 0.25;  // 1.6 MB/s for half a second: 0.8 MB in place of 1.6.
  cluster.changes.push_back(slow);
  for (const char* backend : kSimulators) {
    CAPTURE(backend);
    CHECK(run(backend, messages_to(1, 1), cluster).last_end().value == near(1.26));
  }
}

TEST_CASE("random programs on changing networks with windows have the same starts and ends") {
  test::Draw draw{Rng(61, "windows")}, draw_changes{Rng(61, "changes")};
  int compared = 0, limited = 0;
  for (int trial = 0; compared < test::trials(200); ++trial) {
    REQUIRE(trial < 500);
    const test::RandomCase c = test::random_case(draw, 6);
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) continue;
    Program& program = *lowered;
    Cluster cluster = test::bare_cluster(program.devices, 1);
    for (int d = 0; d < program.devices; ++d) {
      test::connect(cluster, {d, program.devices}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300),
                    draw(0, 3) == 0 ? Duplex::Half : Duplex::Full);
      if (draw(0, 2) == 0) cluster.links.back().window = Bytes{1e3 * draw(10, 2000)};
    }
    const Timeline before = run("fluid", program, cluster);
    Cluster unlimited = cluster;
    for (Link& link : unlimited.links) link.window = {};
    limited += test::difference(program, before, run("fluid", program, unlimited)) != "";
    if (draw(0, 1) == 0) test::random_changes(cluster, before.last_end().value, draw_changes);
    CHECK(test::difference(program, run("fluid", program, cluster), run("simgrid", program, cluster)) == "");
    ++compared;
  }
  CHECK(limited >= (test::all_trials() ? 50 : 5));
}

}  // namespace stagecraft::window_test
