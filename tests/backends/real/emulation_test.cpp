// Sleeping in place of computing: what is late does not make the rest late, and sleeps end with the run.

#include <doctest/doctest.h>

#include <thread>

#include "backends/real/emulation.hpp"
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
  Late emulation(program);
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
  Late emulation(program);
  const real::Times times = real::run_program(program, emulation, nullptr, {});
  const double came = times.end[message.receive];
  const InstructionId last{static_cast<std::int64_t>(program.size()) - 1};
  CHECK(came >= times.start[first] + 0.001 + kLate);
  CHECK(times.end[last] >= came + 0.001 + kLate);
}

TEST_CASE("a sleep ends when the run is interrupted") {
  test::ProgramBuilder builder(1);
  const InstructionId hour = builder.compute(0, 3600);
  const Program program = builder.build();
  real::Emulation emulation(program);
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
  real::Emulation emulation(program);
  CHECK(emulation.share_bytes(program.collectives[0].first) == 100);
  CHECK(emulation.share_bytes(program.collectives[1].first) == 400);
}

}  // namespace stagecraft::emulation_test
