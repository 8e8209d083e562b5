// TCP's slow start: the first message of each connection takes longer, alike on every simulator.

#include "sim/cluster/link_table.hpp"

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/random_changes.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::slow_start_test {
namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

/// Cables of 100 Mbit/s with a round trip of 20 ms between two devices.
Cluster far_star(int devices) {
  Cluster cluster = test::star(devices, 12.5e6, 5e-3);
  for (Link& link : cluster.links) link.slow_start = true;
  return cluster;
}

double delay(double bytes, double bandwidth, double latency, bool slow_start = true) {
  Route route;
  route.bandwidth = Bandwidth{bandwidth};
  route.latency = Seconds{latency};
  route.slow_start = slow_start;
  return slow_start_delay(route, Bytes{bytes}).value;
}

}  // namespace

TEST_CASE("slow start waits for acknowledgements until bytes or the round trip are used up") {
  // 448,880 bytes leave in five round trips, which alone take 35.91 ms at this rate; the rest flows.
  CHECK(delay(500e3, 12.5e6, 10e-3) == near(5 * 20e-3 - 31 * 14480 / 12.5e6));
  // After three windows the next one, 115,840 bytes, takes longer than the round trip.
  CHECK(delay(500e3, 5e6, 10e-3) == near(3 * 20e-3 - 7 * 14480 / 5e6));
  CHECK(delay(14480, 12.5e6, 10e-3) == 0);
  CHECK(delay(14481, 12.5e6, 10e-3) == near(20e-3 - 14480 / 12.5e6));
  CHECK(delay(500e3, 12.5e6, 0) == 0);
  CHECK(delay(500e3, 12.5e6, 10e-3, false) == 0);
}

TEST_CASE("only the first message of a connection starts slowly, on every simulator") {
  test::ProgramBuilder builder(3);
  builder.send(0, 1, 500'000);
  builder.send(0, 1, 500'000);
  builder.send(1, 0, 500'000);  // The other direction is another connection.
  const Program program = builder.build();
  const double first = 5 * 20e-3 - 31 * 14480 / 12.5e6;
  for (const char* backend : {"ideal", "fluid", "simgrid"}) {
    CAPTURE(backend);
    const Timeline t = run(backend, program, far_star(3));
    CHECK(t.end[InstructionId{0}] == near(0.05 + first));
    CHECK(t.end[InstructionId{2}] == near(0.1 + first));
    CHECK(t.end[InstructionId{4}] == near(0.05 + first));
  }
}

TEST_CASE("random programs on changing networks with slow start have the same starts and ends") {
  test::Draw draw{Rng(62, "slow start")}, draw_changes{Rng(62, "changes")};
  int compared = 0, slowed = 0;
  for (int trial = 0; compared < test::trials(150); ++trial) {
    REQUIRE(trial < 500);
    const test::RandomCase c = test::random_case(draw, 6);
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) continue;
    Program& program = *lowered;
    const bool shared = draw(0, 1) == 0;
    Cluster cluster = test::bare_cluster(program.devices, 1);
    for (int d = 0; d < program.devices; ++d) {
      test::connect(cluster, {d, program.devices}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300),
                    shared ? Duplex::Full : Duplex::Unshared);
      cluster.links.back().slow_start = draw(0, 1) == 0;
    }
    Cluster quick = cluster;
    for (Link& link : quick.links) link.slow_start = false;
    const Timeline before = run("fluid", program, cluster);
    slowed += test::difference(program, before, run("fluid", program, quick)) != "";
    if (draw(0, 1) == 0) test::random_changes(cluster, before.last_end().value, draw_changes);
    const char* const other = shared ? "simgrid" : "ideal";
    CHECK(test::difference(program, run("fluid", program, cluster), run(other, program, cluster)) == "");
    ++compared;
  }
  CHECK(slowed >= (test::all_trials() ? 50 : 5));
}

}  // namespace stagecraft::slow_start_test
