// Sleeping in place of computing: what is late does not make the rest late, and sleeps end with the run.

#include <doctest/doctest.h>

#include <thread>

#include "backends/real/emulation.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::emulation_test {
namespace {

constexpr double kLate = 0.05;

/// Each computation ends that much later than its sleep.
class Late : public real::Emulation {
 public:
  using Emulation::Emulation;
  void compute(InstructionId id) override {
    Emulation::compute(id);
    std::this_thread::sleep_for(std::chrono::duration<double>(kLate));
  }
};

}  // namespace

TEST_CASE("an op is due when the one before it was due, however late that was") {
  test::ProgramBuilder builder(1);
  for (int n = 0; n < 4; ++n) builder.compute(0, 0.001);
  const Program program = builder.build();
  const Cluster cluster = test::bare_cluster(2);
  Late emulation(program, cluster);
  real::run_program(program, emulation, nullptr, {});
  std::vector<double> lateness = emulation.lateness();
  REQUIRE(lateness.size() == 4);
  // An op after n others is due n times a millisecond later, and begins n times the delay later.
  for (std::size_t n = 0; n < lateness.size(); ++n)
    CHECK(lateness[n] >= static_cast<double>(n) * (kLate - 0.001) - 1e-9);
}

TEST_CASE("an op that waits for a message is due when that has come") {
  test::ProgramBuilder builder(2);
  const InstructionId first = builder.compute(0, 0.001);
  const test::Message message = builder.send(0, 1, 8, {first});
  builder.compute(1, 0.001, {message.receive});
  const Program program = builder.build();
  const Cluster cluster = test::bare_cluster(2);
  Late emulation(program, cluster);
  const real::Times times = real::run_program(program, emulation, nullptr, {});
  const double came = times.end[message.receive];
  const InstructionId last{static_cast<std::int64_t>(program.size()) - 1};
  CHECK(came >= times.start[first] + 0.001 + kLate);
  CHECK(times.end[last] >= came + 0.001 + kLate);
}

real::Times emulated(const Program& program, const Cluster& cluster, double dilation = 1) {
  real::Emulation emulation(program, cluster, dilation);
  return real::run_program(program, emulation, nullptr, {});
}

/// From the start of the first op to the end of another one: at least as long as it should be.
double seconds_until(const real::Times& times, int last) {
  return times.end[InstructionId{last}] - times.start[InstructionId{0}];
}

TEST_CASE("an emulated device is as slow as the changes of its cluster say") {
  test::ProgramBuilder builder(1);
  builder.compute(0, 0.1);
  builder.compute(0, 0.01);
  const Program program = builder.build();
  Cluster cluster = test::bare_cluster(1);
  cluster.changes = {{.devices = {DeviceId{0}}, .from = Seconds{0.05}, .until = Seconds{0.15}, .rate = 0.25}};
  // Half is done at 0.05 s, a quarter more at 0.15 s.
  const real::Times times = emulated(program, cluster);
  CHECK(times.end[InstructionId{0}] >= 0.175 - 1e-6);
  CHECK(times.end[InstructionId{1}] >= 0.185 - 1e-6);
  CHECK(seconds_until(emulated(program, test::bare_cluster(1), 3), 0) >= 0.3 - 1e-6);
}

TEST_CASE("an emulated op has the jitter that a simulated one has") {
  test::ProgramBuilder builder(1);
  for (int n = 0; n < 4; ++n) builder.compute(0, 0.02);
  const Program program = builder.build();
  Cluster cluster = test::bare_cluster(1);
  cluster.jitter = {.max_fraction = 4, .seed = 7};
  const Conditions conditions(cluster);
  double due = 0;
  for (int n = 0; n < 4; ++n) due += conditions.compute(DeviceId{0}, n, 0, 0.02).end;
  CHECK(due > 0.1);
  CHECK(seconds_until(emulated(program, cluster), 3) >= due - 1e-6);
}

TEST_CASE("a device that is never back ends an emulated run with a sentence") {
  test::ProgramBuilder builder(1);
  builder.compute(0, 0.01);
  const Program program = builder.build();
  Cluster cluster = test::bare_cluster(1);
  cluster.changes = {{.devices = {DeviceId{0}}, .down = true}};
  CHECK_THROWS_WITH_AS(emulated(program, cluster), doctest::Contains("stands still and is never back"), BackendError);
}

TEST_CASE("a sleep ends when the run is interrupted") {
  test::ProgramBuilder builder(1);
  const InstructionId hour = builder.compute(0, 3600);
  const Program program = builder.build();
  const Cluster cluster = test::bare_cluster(1);
  real::Emulation emulation(program, cluster);
  std::thread device([&] { emulation.compute(hour); });
  emulation.interrupt();
  device.join();
  CHECK(emulation.lateness() == std::vector<double>{0});
}

TEST_CASE("a member of a collective brings what the algorithm moves") {
  test::ProgramBuilder builder(4);
  for (int d = 0; d < 4; ++d) builder.compute(d, 0);
  builder.collective(CollectiveKind::AllGather, collective_algorithms::ring, {0, 1, 2, 3}, 400);
  builder.all_reduce({0, 1, 2, 3}, 400);
  const Program program = builder.build();
  const Cluster cluster = test::bare_cluster(4);
  real::Emulation emulation(program, cluster);
  CHECK(emulation.share_bytes(program.collectives[0].first) == 100);
  CHECK(emulation.share_bytes(program.collectives[1].first) == 400);
}

TEST_CASE("collectives that are one instruction move the bytes of all of them") {
  test::ProgramBuilder builder(2);
  for (int d = 0; d < 2; ++d) builder.compute(d, 0);
  builder.collective(CollectiveKind::AllReduce, collective_algorithms::ring, {0, 1}, 400, {}, {}, 3);
  builder.collective(CollectiveKind::AllGather, collective_algorithms::ring, {0, 1}, 400, {}, {}, 3);
  const Program program = builder.build();
  const Cluster cluster = test::bare_cluster(2);
  real::Emulation emulation(program, cluster);
  CHECK(emulation.share_bytes(program.collectives[0].first) == 1200);
  CHECK(emulation.share_bytes(program.collectives[1].first) == 600);
}

}  // namespace stagecraft::emulation_test
