// Whole programs whose times follow from max-min sharing by hand. tests/differential compares with SimGrid.

#include "backends/fluid/simulate.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "backends/backend.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::backends {
extern const BackendDef fluid;
}

using namespace stagecraft;
using test::ProgramBuilder;

namespace {

constexpr double kBandwidth = 1e10;
constexpr double kLatency = 1e-6;  // of one link

Timeline run(const Program& program, const Cluster& cluster, const RunOptions& options = {}) {
  return backends::fluid.run(program, cluster, options);
}

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-12); }

/// Device i sends (i + 1) MB to the last one.
Program many_to_one(int senders, bool rendezvous = true) {
  ProgramBuilder builder(senders + 1, rendezvous);
  for (int i = 0; i < senders; ++i) builder.send(i, senders, 1'000'000 * (static_cast<std::uint64_t>(i) + 1));
  return builder.build();
}

Program both_ways() {
  ProgramBuilder builder(2);
  builder.send(0, 1, 1'000'000);
  builder.send(1, 0, 1'000'000);
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

TEST_CASE("each kind of link divides what it has") {
  const auto last = [](const Program& program, int devices, Duplex duplex) {
    return run(program, test::star(devices, kBandwidth, kLatency, duplex)).last_end().value;
  };
  CHECK(last(both_ways(), 2, Duplex::Full) == near(102e-6));
  CHECK(last(both_ways(), 2, Duplex::Half) == near(202e-6));
  CHECK(last(both_ways(), 2, Duplex::Unshared) == near(102e-6));
  CHECK(last(many_to_one(8), 9, Duplex::Unshared) == near(802e-6));
  Cluster medium = test::bare_cluster(4);
  test::connect(medium, {0, 1, 2, 3}, kBandwidth, kLatency, Duplex::Half);
  ProgramBuilder builder(4);
  builder.send(0, 1, 1'000'000);
  builder.send(2, 3, 1'000'000);
  for (const double end : run(builder.build(), medium).end) CHECK(end == near(201e-6));
}

TEST_CASE("latency is paid before and does not change the shares") {
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

TEST_CASE("a trunk is full although every card behind it has room") {
  // Four pairs across a trunk of 1.5 cards: each has 3/8 of a card.
  Cluster cluster = test::bare_cluster(8, 2);
  for (int d = 0; d < 8; ++d) test::connect(cluster, {d, 8 + d / 4}, kBandwidth, 0);
  test::connect(cluster, {8, 9}, 1.5 * kBandwidth, 0);
  ProgramBuilder builder(8);
  for (int d = 0; d < 4; ++d) builder.send(d, d + 4, 3'000'000);
  for (const double end : run(builder.build(), cluster).end) CHECK(end == near(3e6 / (kBandwidth * 3 / 8)));
}

TEST_CASE("an all-reduce during a message shares the card") {
  ProgramBuilder builder(3);
  builder.all_reduce({0, 1}, 1'000'000);
  builder.send(0, 2, 2'000'000);
  const Timeline timeline = run(builder.build(), test::star(3, kBandwidth, 0));
  CHECK(timeline.end[InstructionId{0}] == near(200e-6));
  CHECK(timeline.end[InstructionId{2}] == near(300e-6));
}

TEST_CASE("a link that always has something to carry carries all of it at full speed") {
  // Whatever comes when, as long as there is something: what came through is time times bandwidth.
  Rng rng(74, "work");
  for (int trial = 0; trial < 50; ++trial) {
    const int senders = rng.integer(1, 12);
    ProgramBuilder builder(senders + 1, false);
    double bytes = 0;
    for (int i = 0; i < senders; ++i) {
      // Each card alone could keep the way into the last device busy, and starts while the first one, a long one, runs.
      const auto late = builder.compute(i, i == 0 ? 0 : 1e-6 * rng.integer(0, 1000));
      for (int k = rng.integer(1, 5); k > 0; --k) {
        const auto size = static_cast<std::uint64_t>(i == 0 ? 100'000'000 : 1000 * rng.integer(1, 9000));
        builder.send(i, senders, size, {late});
        bytes += static_cast<double>(size);
      }
    }
    const Timeline timeline = run(builder.build(), test::star(senders + 1, kBandwidth, 0));
    CHECK(timeline.last_end().value == near(bytes / kBandwidth));
  }
}

TEST_CASE("no bytes take the latency, the same device takes nothing, an empty program no time at all") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 0);
  builder.send(1, 1, 1'000'000);
  const Timeline timeline = run(builder.build(), test::star(2, kBandwidth, kLatency));
  CHECK(timeline.end[InstructionId{0}] == near(2e-6));
  CHECK(timeline.end[InstructionId{2}] == 0);
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

TEST_CASE("it stops after the wall time that was asked for") {
  ProgramBuilder builder(1);
  for (int i = 0; i < 50'000; ++i) builder.compute(0, 1);
  const Program program = builder.build();
  CHECK_THROWS_AS(run(program, test::bare_cluster(1), {.timeout = Seconds{1e-9}}), BackendError);
  CHECK(run(program, test::bare_cluster(1), {.timeout = Seconds{3600}}).last_end().value == 50'000);
}

// Devices 0, 1, 4 and 5 are on one node and 2 and 3 on another; each node has one card. An expert group {0, 2} sends
// S/2 each way in an all-to-all of S bytes, a data-parallel ring {1, 3} S' in an all-reduce of S'. While both run, each
// has half of the card. The tensor group {4, 5} shares no link.
TEST_CASE("an expert and a data-parallel group share the cards of their nodes, a tensor group inside one does not") {
  constexpr double kInside = 1e13;
  Cluster cluster = test::bare_cluster(6, 3);
  for (const int d : {0, 1, 4, 5}) test::connect(cluster, {d, 6}, kInside, 0);
  for (const int d : {2, 3}) test::connect(cluster, {d, 7}, kInside, 0);
  for (const int node : {6, 7}) test::connect(cluster, {node, 8}, kBandwidth, 0);
  ProgramBuilder builder(6);
  using namespace collective_algorithms;
  const test::Ids expert = builder.collective(CollectiveKind::AllToAll, direct, {0, 2}, 60'000'000);
  const test::Ids data = builder.collective(CollectiveKind::AllReduce, ring, {1, 3}, 50'000'000);
  const test::Ids tensor = builder.collective(CollectiveKind::AllReduce, ring, {4, 5}, 50'000'000);
  const Timeline timeline = run(builder.build(), cluster);
  CHECK(timeline.end[expert.front()] == near(2 * 30e6 / kBandwidth));
  CHECK(timeline.end[data.front()] == near((30e6 + 50e6) / kBandwidth));
  CHECK(timeline.end[tensor.front()] == near(50e6 / kInside));
}
