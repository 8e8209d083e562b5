// The longest path, by hand.

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::ideal_test {
using test::ProgramBuilder;

namespace {

constexpr double kBandwidth = 1e6, kLatency = 0.25;  // of one of the two links of a route

Timeline run(const Program& program, const Cluster& cluster) { return test::run_ideal(program, cluster); }
Cluster star(int devices) { return test::star(devices, kBandwidth, kLatency); }

}  // namespace

TEST_CASE("computations follow their streams and what they wait for") {
  ProgramBuilder builder(2);
  const auto a = builder.compute(0, 1), b = builder.compute(0, 2), c = builder.compute(1, 5, {a});
  const auto d = builder.compute(0, 1, {c});
  const Timeline t = run(builder.build(), star(2));
  CHECK(t.end_of(a).value == 1);
  CHECK(t.start_of(b).value == 1);
  CHECK(t.start_of(c).value == 1);
  CHECK(t.start_of(d).value == 6);
  CHECK(t.last_end().value == 7);
}

TEST_CASE("a transfer takes the latencies and the slowest link of its route") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 2'000'000);
  builder.send(0, 1, 0);
  Cluster cluster = star(2);
  cluster.links[LinkId{1}].bandwidth = Bandwidth{0.5e6};
  const Timeline t = run(builder.build(), cluster);
  CHECK(t.end[InstructionId{0}] == 4.5);
  CHECK(t.start[InstructionId{2}] == 4.5);  // the next of its stream
  CHECK(t.end[InstructionId{2}] == 5.0);    // no bytes take the latency
}

TEST_CASE("rendezvous: both ends start when both may and end together") {
  ProgramBuilder builder(2);
  const auto early = builder.compute(0, 1), late = builder.compute(1, 3);
  const test::Message m = builder.send(0, 1, 1'000'000, {early}, {late});
  const Timeline t = run(builder.build(), star(2));
  CHECK(t.start_of(m.send).value == 3);
  CHECK(t.start_of(m.receive).value == 3);
  CHECK(t.end_of(m.send).value == 4.5);
  CHECK(t.end_of(m.receive).value == 4.5);
}

TEST_CASE("eager: the send goes alone, the receive ends when posted and there") {
  for (const double posted : {0.5, 3.0}) {
    ProgramBuilder builder(2, false);
    const auto early = builder.compute(0, 1), late = builder.compute(1, posted);
    const test::Message m = builder.send(0, 1, 1'000'000, {early}, {late});
    const Timeline t = run(builder.build(), star(2));
    CHECK(t.start_of(m.send).value == 1);
    CHECK(t.end_of(m.send).value == 2.5);
    CHECK(t.start_of(m.receive).value == posted);
    CHECK(t.end_of(m.receive).value == std::max(posted, 2.5));
  }
}

TEST_CASE("nothing is shared: eight messages into one card take as long as one") {
  ProgramBuilder builder(9);
  for (int d = 0; d < 8; ++d) builder.send(d, 8, 1'000'000);
  const Timeline t = run(builder.build(), star(9));
  for (const double end : t.end) CHECK(end == 1.5);
}

TEST_CASE("an all-reduce starts with its last member and takes 2(n-1) latencies and 2(n-1)/n of the bytes") {
  for (const int n : {2, 3, 4}) {
    ProgramBuilder builder(n);
    std::vector<int> devices;
    test::Ids before;
    for (int d = 0; d < n; ++d) {
      devices.push_back(d);
      before.push_back(builder.compute(d, 1 + d));
    }
    const test::Ids members = builder.all_reduce(devices, 1'200'000, before);
    const Timeline t = run(builder.build(), star(n));
    for (const InstructionId m : members) {
      CHECK(t.start_of(m).value == n);
      CHECK(t.end_of(m).value == doctest::Approx(n + 2 * (n - 1) * (0.5 + 1.2 / n)).epsilon(1e-14));
    }
  }
}

TEST_CASE("an all-reduce goes at the pace of its slowest edge") {
  ProgramBuilder builder(3);
  builder.all_reduce({0, 1, 2}, 3'000'000);
  Cluster cluster = test::bare_cluster(3);
  test::connect(cluster, {0, 1}, 1e6, 0.5);
  test::connect(cluster, {1, 2}, 0.5e6, 0.1);
  test::connect(cluster, {2, 0}, 4e6, 0.2);
  CHECK(run(builder.build(), cluster).end[InstructionId{0}] == doctest::Approx(4 * 0.5 + 4.0 / 0.5).epsilon(1e-14));
}

TEST_CASE("ops that run as one: all inputs before them, all outputs after them") {
  // Rank 0 runs (0F1;0B0) as one, so 0F1's message leaves when 0B0 has ended too.
  const Plan plan = test::dag_plan(2, 2, {{0, 1}});
  const Schedule schedule = complete(test::schedule_from({"0F0 0F1+ 0B0 0B1", "1F0 1B0 1F1 1B1"}), plan, 1);
  const Program program = test::lowered(schedule, plan, uniform_costs(plan, test::times(1, 2)), test::pure_delays());
  const Timeline t = run(program, test::delay_cluster(2, 0));
  CHECK(t.start_of(test::find(program, "0F1")).value == 4);  // 1B0 ends at 1 + 1 + 2
  CHECK(t.start_of(test::find(program, "1F1")).value == 7);  // 4 + 1 + 2
  CHECK(t.last_end().value == 12);
}

TEST_CASE("the same program gives the same times, and no path is an error") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 1'000'000);
  const Program program = builder.build();
  CHECK(run(program, star(2)).end == run(program, star(2)).end);
  CHECK_THROWS_AS(run(program, test::bare_cluster(2)), Infeasible);
  CHECK(run(ProgramBuilder(1).build(), star(1)).end.empty());
}

}  // namespace stagecraft::ideal_test
