#include "backends/des/core.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/des/routes.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::core_test {
using test::ProgramBuilder;

namespace {

/// Gives every flow the same rate, whatever else there is.
class FixedRate final : public des::Network {
 public:
  void start(int flow, std::int32_t, std::uint64_t bytes, double max_rate) override {
    flows.push_back({now + static_cast<double>(bytes) / std::min(rate, max_rate), flow});
    ++started;
  }

  void drive(des::Core& core) {
    core.begin(0);
    while (core.next_time() < kInfinity || !flows.empty()) {
      const auto first = std::min_element(flows.begin(), flows.end());
      if (first == flows.end() || core.next_time() <= first->first) {
        now = core.next_time();
        core.advance(now);
        continue;
      }
      const auto done = *first;
      flows.erase(first);
      now = done.first;
      core.flow_done(done.second, now);
    }
    core.require_finished();
  }

  double rate = 1;  // bytes per second
  double now = 0;
  int started = 0;
  std::vector<std::pair<double, int>> flows;
};

struct SimulatedTimes {
  std::vector<double> start, end;
  int flows = 0;
};

SimulatedTimes play(const Program& program, const Cluster& cluster) {
  SimulatedTimes played{std::vector<double>(program.size()), std::vector<double>(program.size()), 0};
  FixedRate network;
  const std::vector<Route> routes = des::routes_of(program, cluster);
  des::Core core(program, routes, network, played.start, played.end);
  network.drive(core);
  CHECK(core.finished());
  played.flows = network.started;
  return played;
}

Cluster slow_star(int devices) { return test::star(devices, 1e9, 0.25); }  // latency 0.5 between two devices

}  // namespace

TEST_CASE("computations of a device follow each other") {
  ProgramBuilder builder(2);
  builder.compute(0, 1.5);
  builder.compute(1, 1);
  builder.compute(0, 2);
  builder.compute(0, 0);
  const SimulatedTimes played = play(builder.build(), slow_star(2));
  CHECK(played.start == std::vector<double>{0, 0, 1.5, 3.5});
  CHECK(played.end == std::vector<double>{1.5, 1, 3.5, 3.5});
}

TEST_CASE("a rendezvous transfer starts when both ends are ready and ends for both") {
  ProgramBuilder builder(2);
  const auto sender = builder.compute(0, 1), receiver = builder.compute(1, 3);
  const test::Message message = builder.send(0, 1, 10, {sender}, {receiver});
  builder.compute(0, 1, {message.send});
  const SimulatedTimes played = play(builder.build(), slow_star(2));
  CHECK(played.start == std::vector<double>{0, 0, 3, 3, 13.5});
  CHECK(played.end == std::vector<double>{1, 3, 13.5, 13.5, 14.5});
  CHECK(played.flows == 1);
}

TEST_CASE("an eager send goes alone") {
  for (const double late : {3.0, 30.0}) {
    ProgramBuilder builder(2, false);
    const auto sender = builder.compute(0, 1), receiver = builder.compute(1, late);
    const test::Message message = builder.send(0, 1, 10, {sender}, {receiver});
    builder.compute(1, 1, {message.receive});
    const SimulatedTimes played = play(builder.build(), slow_star(2));
    CHECK(played.start[2] == 1);
    CHECK(played.end[2] == 11.5);
    CHECK(played.start[3] == late);
    CHECK(played.end[3] == std::max(late, 11.5));
    CHECK(played.start[4] == std::max(late, 11.5));
  }
}

TEST_CASE("an eager receive may wait for its own send") {
  ProgramBuilder builder(2, false);
  const test::Message message = builder.send(0, 1, 4);
  builder.wait(message.receive, message.send);
  const SimulatedTimes played = play(builder.build(), slow_star(2));
  CHECK(played.start == std::vector<double>{0, 4.5});
  CHECK(played.end == std::vector<double>{4.5, 4.5});
}

TEST_CASE("nothing to carry never meets the network") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 0);
  builder.send(1, 1, 1000);
  const SimulatedTimes played = play(builder.build(), slow_star(2));
  CHECK(played.end == std::vector<double>{0.5, 0.5, 0, 0});
  CHECK(played.flows == 0);
}

TEST_CASE("a collective starts with its last member and ends with its last flow") {
  ProgramBuilder builder(4);
  const auto late = builder.compute(2, 5);
  const test::Ids members = builder.all_reduce({0, 1, 2, 3}, 100, {late});
  const auto next = builder.compute(3, 1, {members[3]});
  const SimulatedTimes played = play(builder.build(), slow_star(4));
  for (const InstructionId member : members) {
    CHECK(played.start[member.value] == 5);
    CHECK(played.end[member.value] == 5 + 2 * 3 * 0.5 + 150);  // 2(n-1) latencies, 2(n-1)/n S
  }
  CHECK(played.start[next.value] == 158);
  CHECK(played.flows == 4);
}

TEST_CASE("a collective of one member, or of no bytes, is no flow") {
  ProgramBuilder builder(2);
  builder.all_reduce({1}, 100);
  builder.all_reduce({0, 1}, 0);
  const SimulatedTimes played = play(builder.build(), slow_star(2));
  CHECK(played.end == std::vector<double>{0, 1, 1});
  CHECK(played.flows == 0);
}

TEST_CASE("phases follow each other, each after its latencies, with all rounds in one") {
  ProgramBuilder builder(4);
  builder.collective(CollectiveKind::AllReduce, collective_algorithms::hierarchical, {0, 1, 2, 3}, 80, {}, {0, 0, 1, 1},
                     3);
  const auto next = builder.compute(2, 1, {InstructionId{2}});
  const SimulatedTimes played = play(builder.build(), slow_star(4));
  // Half of the array inside each node, twice a quarter across in two steps, half inside again; three times.
  CHECK(played.end[0] == 3 * (0.5 + 40 + 2 * 0.5 + 40 + 0.5 + 40));
  CHECK(played.start[next.value] == played.end[0]);
  CHECK(played.flows == 3 * 4);
}

TEST_CASE("what blocks is named") {
  ProgramBuilder builder(2);
  const auto before = builder.compute(0, 1);
  const test::Message there = builder.send(0, 1, 8, {before});
  const test::Message back = builder.send(1, 0, 8);
  builder.wait(there.send, back.receive);
  builder.wait(back.send, there.receive);
  const Program program = builder.build();
  try {
    play(program, slow_star(2));
    FAIL("a deadlock went unnoticed");
  } catch (const Infeasible& error) {
    const std::string message = error.what();
    CHECK(error.code() == "deadlock");
    CHECK(message.find("4 of 5 instructions never ended") != std::string::npos);
    CHECK(message.find(to_text(program, there.send) + " waits for " + to_text(program, back.receive)) !=
          std::string::npos);
  }
}

TEST_CASE("a flow that never comes is named") {
  ProgramBuilder builder(2, false);
  builder.send(0, 1, 8);
  const Program program = builder.build();
  const Cluster cluster = slow_star(2);
  const std::vector<Route> routes = des::routes_of(program, cluster);
  std::vector<double> start(2), end(2);
  FixedRate network;
  des::Core core(program, routes, network, start, end);
  core.begin(0);
  core.advance(1);
  CHECK(core.next_time() == kInfinity);
  CHECK_THROWS_WITH_AS(core.require_finished(), doctest::Contains("its data never arrived"), Infeasible);
  CHECK_THROWS_WITH_AS(core.require_finished(), doctest::Contains("waits for the data of"), Infeasible);
}

TEST_CASE("time never runs backwards") {
  ProgramBuilder builder(2, false);
  const test::Message message = builder.send(0, 1, 8);
  const auto slow = builder.compute(1, 2);
  builder.compute(1, 1, {message.receive});
  const Program program = builder.build();
  const std::vector<Route> routes = des::routes_of(program, slow_star(2));
  std::vector<double> start(4), end(4);
  FixedRate network;
  des::Core core(program, routes, network, start, end);
  core.begin(0);
  core.advance(1);
  core.flow_done(0, 2.5);  // the computation that ended at 2 is handled after it
  core.advance(2.5);
  CHECK(end[slow.value] == 2.5);
  CHECK(start[3] == 2.5);
}

}  // namespace stagecraft::core_test
