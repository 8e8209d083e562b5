#include "backends/simgrid/simulate.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "backends/backend.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::backends {
extern const BackendDef simgrid;
}

using namespace stagecraft;
using test::ProgramBuilder;

namespace {

constexpr double kBandwidth = 1e10;
constexpr double kLatency = 1e-6;  // of one link

Timeline run(const Program& program, const Cluster& cluster) { return backends::simgrid.run(program, cluster, {}); }

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

/// Two messages of 1e6 bytes at once, in opposite directions.
Program both_ways() {
  ProgramBuilder builder(2);
  builder.send(0, 1, 1'000'000);
  builder.send(1, 0, 1'000'000);
  return builder.build();
}

Program many_to_one(int senders, bool rendezvous = true) {
  ProgramBuilder builder(senders + 1, rendezvous);
  for (int i = 0; i < senders; ++i) builder.send(i, senders, 1'000'000 * (static_cast<std::uint64_t>(i) + 1));
  return builder.build();
}

}  // namespace

TEST_CASE("flows into one card share it evenly and the rest takes over what they leave") {
  const double ends[] = {0.802e-3, 1.502e-3, 2.102e-3, 2.602e-3, 3.002e-3, 3.302e-3, 3.502e-3, 3.602e-3};
  for (const bool rendezvous : {true, false}) {
    const Timeline timeline = run(many_to_one(8, rendezvous), test::star(9, kBandwidth, kLatency));
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(timeline.start[InstructionId{2 * i}] == 0);
      CHECK(timeline.end[InstructionId{2 * i}] == near(ends[i]));
      CHECK(timeline.end[InstructionId{2 * i + 1}] == timeline.end[InstructionId{2 * i}]);
    }
  }
}

TEST_CASE("unshared links give everybody everything") {
  const Timeline timeline = run(many_to_one(8), test::star(9, kBandwidth, kLatency, Duplex::Unshared));
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(timeline.end[InstructionId{2 * i}] == near(2e-6 + 1e-4 * (static_cast<double>(i) + 1)));
}

TEST_CASE("full duplex does not mix the directions, half duplex does") {
  CHECK(run(both_ways(), test::star(2, kBandwidth, kLatency)).end[InstructionId{0}] == near(102e-6));
  CHECK(run(both_ways(), test::star(2, kBandwidth, kLatency, Duplex::Half)).end[InstructionId{0}] == near(202e-6));
}

TEST_CASE("stations of a medium share it") {
  Cluster cluster = test::bare_cluster(4);
  test::connect(cluster, {0, 1, 2, 3}, kBandwidth, kLatency, Duplex::Half);
  ProgramBuilder builder(4);
  builder.send(0, 1, 1'000'000);
  builder.send(2, 3, 1'000'000);
  for (const double end : run(builder.build(), cluster).end) CHECK(end == near(201e-6));
}

TEST_CASE("latency does not change the shares") {
  Cluster cluster = test::bare_cluster(3, 1);
  test::connect(cluster, {0, 3}, kBandwidth, 1e-6);
  test::connect(cluster, {1, 3}, kBandwidth, 10e-6);
  test::connect(cluster, {2, 3}, kBandwidth, 0);
  ProgramBuilder builder(3);
  builder.send(0, 2, 1'000'000);
  builder.send(1, 2, 1'000'000);
  const Timeline timeline = run(builder.build(), cluster);
  CHECK(timeline.end[InstructionId{0}] == near(1e-6 + 9e-6 + 2 * 91e-6));  // alone for 9 us, then half of the link
  CHECK(timeline.end[InstructionId{2}] == near(201e-6));
}

TEST_CASE("pairs leave the star where their route does") {
  Cluster cluster = test::bare_cluster(4, 3);  // two nodes of two devices, each with a fast switch, and one between
  for (int d = 0; d < 4; ++d) test::connect(cluster, {d, 4 + d / 2}, 1e11, 0);
  for (int d = 0; d < 4; ++d) test::connect(cluster, {d, 6}, kBandwidth, kLatency);
  ProgramBuilder builder(4);
  builder.send(0, 1, 1'000'000);
  builder.send(0, 2, 1'000'000);
  builder.send(3, 2, 1'000'000);
  builder.send(1, 3, 1'000'000);
  builder.send(1, 2, 1'000'000);
  const Timeline timeline = run(builder.build(), cluster);
  CHECK(timeline.end[InstructionId{0}] == near(10e-6));
  CHECK(timeline.end[InstructionId{2}] == near(202e-6));  // shares the way into device 2
  CHECK(timeline.end[InstructionId{4}] == near(10e-6));
  CHECK(timeline.end[InstructionId{8}] == near(202e-6));
}

TEST_CASE("a cable without a switch is a route") {
  Cluster cluster = test::bare_cluster(2);
  test::connect(cluster, {0, 1}, kBandwidth, kLatency);
  const Timeline timeline = run(both_ways(), cluster);
  CHECK(timeline.end[InstructionId{0}] == near(101e-6));
  CHECK(timeline.end[InstructionId{2}] == near(101e-6));
}

TEST_CASE("no bytes take the latency, the same device takes nothing") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 0);
  builder.send(1, 1, 1'000'000);
  const Timeline timeline = run(builder.build(), test::star(2, kBandwidth, kLatency));
  CHECK(timeline.end[InstructionId{0}] == near(2e-6));
  CHECK(timeline.end[InstructionId{2}] == 0);
}

TEST_CASE("a rendezvous waits for the receiver, an eager message does not") {
  for (const bool rendezvous : {true, false}) {
    ProgramBuilder builder(2, rendezvous);
    const auto busy = builder.compute(1, 1e-3);
    const test::Message message = builder.send(0, 1, 1'000'000, {}, {busy});
    const Timeline timeline = run(builder.build(), test::star(2, kBandwidth, kLatency));
    CHECK(timeline.start_of(message.send).value == (rendezvous ? 1e-3 : 0));
    CHECK(timeline.end_of(message.send).value == near(rendezvous ? 1.102e-3 : 102e-6));
    CHECK(timeline.end_of(message.receive).value == near(rendezvous ? 1.102e-3 : 1e-3));
  }
}

TEST_CASE("a ring all-reduce alone takes its closed form") {
  for (const int members : {2, 3, 8}) {
    ProgramBuilder builder(members);
    std::vector<int> devices;
    for (int d = 0; d < members; ++d) devices.push_back(d);
    builder.all_reduce(devices, 240'000'000);
    const double steps = 2.0 * (members - 1);
    const Timeline timeline = run(builder.build(), test::star(members, kBandwidth, kLatency));
    for (const double end : timeline.end) CHECK(end == near(steps * 2e-6 + steps / members * 240e6 / kBandwidth));
  }
}

TEST_CASE("an all-reduce during a message shares the card") {
  ProgramBuilder builder(3);
  builder.all_reduce({0, 1}, 1'000'000);
  builder.send(0, 2, 2'000'000);
  Cluster cluster = test::star(3, kBandwidth, 0);
  const Timeline timeline = run(builder.build(), cluster);
  CHECK(timeline.end[InstructionId{0}] == near(200e-6));
  CHECK(timeline.end[InstructionId{2}] == near(300e-6));
}

TEST_CASE("every simulation starts at zero") {
  ProgramBuilder builder(1);
  builder.compute(0, 0);
  builder.compute(0, 2);
  const Program program = builder.build();
  for (int i = 0; i < 2; ++i) {
    const Timeline timeline = run(program, test::star(1, kBandwidth, 0));
    CHECK(timeline.start == IdVector<InstructionId, double>{0, 0});
    CHECK(timeline.end == IdVector<InstructionId, double>{0, 2});
    CHECK(timeline.clock == Clock::Simulated);
    CHECK(timeline.provenance.backend == "simgrid");
    CHECK(timeline.provenance.backend_version == sg::library_version());
  }
}

TEST_CASE("an empty program is played too") {
  CHECK(run(ProgramBuilder(1).build(), test::bare_cluster(1)).end.empty());
}

TEST_CASE("what is wrong is said as what it is") {
  CHECK_THROWS_AS(run(both_ways(), test::star(2, 0, 0)), InputError);
  CHECK_THROWS_AS(run(both_ways(), test::bare_cluster(2)), Infeasible);
  ProgramBuilder builder(2);
  const test::Message there = builder.send(0, 1, 8), back = builder.send(1, 0, 8);
  builder.wait(there.send, back.receive);
  builder.wait(back.send, there.receive);
  try {
    run(builder.build(), test::star(2, kBandwidth, 0));
    FAIL("a deadlock went unnoticed");
  } catch (const Infeasible& error) {
    CHECK(error.code() == "deadlock");
  }
}
