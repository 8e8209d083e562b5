#include "sim/output/core_waits.hpp"

#include <doctest/doctest.h>

#include "sim/output/validation.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::core_waits_test {
namespace {

/// Two devices, three micro-batches, F takes 1 s, B 2 s, U 0.5 s: 9.5 s of computation a device in each iteration.
struct Case {
  Cluster cluster = test::star(2, 1e9, 1e-3);
  Plan plan = chain_plan(2, 2, 3);
  Program program = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2, 0.5)), test::pure_delays(5));
  Timeline simulated = test::run_ideal(program, cluster);
  Timeline measured = simulated;

  /// Lets computations of a kind on a device wait for a core for a share of their time, from an iteration on.
  void wait(double share, InstructionKind kind, int device, int first_iteration = 0) {
    measured.core_waits.resize(program.size());
    for (const InstructionId n : program.instructions.ids()) {
      const Instruction& i = program.at(n);
      if (i.kind == kind && i.device.value == device && program.iteration_of(i) >= first_iteration)
        measured.core_waits[n] = share * (measured.end[n] - measured.start[n]);
    }
  }
  std::vector<CoreWaits> waits() const { return core_waits(program, simulated, measured); }
  std::string doubt() const {
    return core_waits_doubt(
        waits(),
        compare(program, simulated, measure(program, simulated, cluster), measured, cluster).iteration.measured);
  }
};

}  // namespace

TEST_CASE("waits of the first iteration do not count, and waits of the others are added up by iteration") {
  Case c;
  CHECK(c.waits().empty());  // Nothing is known.
  c.wait(0.5, InstructionKind::Forward, 0);
  c.wait(0.005, InstructionKind::Backward, 1);  // Less than 1 %, so these are not marked.
  const std::vector<CoreWaits> waits = c.waits();
  REQUIRE(waits.size() == 4);
  for (const CoreWaits& w : waits) {
    CHECK(w.waited == doctest::Approx(3 * 0.5 + 3 * 0.01));
    CHECK(w.simulated == 0);
    CHECK(w.computing == doctest::Approx(2 * 9.5));
    CHECK(w.marked == doctest::Approx(3));
  }
}

TEST_CASE("a verdict is not sure where marked computations take more than a share of most iterations") {
  Case quiet;
  quiet.wait(0.009, InstructionKind::Backward, 0);  // Every backward waits, and none for more than 1 %.
  CHECK(quiet.doubt().empty());
  Case busy;
  busy.wait(0.02, InstructionKind::Forward, 1);  // 3 s of about 12 s.
  CHECK(busy.doubt().find("in 4 of 4 iterations") == 0);
  CHECK(busy.doubt().find("60 ms of waiting") != std::string::npos);
  Case rare;
  rare.wait(0.5, InstructionKind::Forward, 1, 3);  // Two of four iterations: the median is not theirs.
  CHECK(rare.doubt().empty());
  Case frequent;
  frequent.wait(0.5, InstructionKind::Forward, 1, 2);
  CHECK(frequent.doubt().find("in 3 of 4 iterations") == 0);
  Case small;
  small.wait(0.5, InstructionKind::Update, 1);  // 0.5 s of about 12 s are less than 5 %.
  CHECK(small.doubt().empty());
}

TEST_CASE("where the simulation shares cores, threads that wait as long as simulated leave no doubt") {
  Case c;
  // In the simulation every op takes twice its time, so it waits for half of it, and so it does in the run.
  for (Timeline* t : {&c.simulated, &c.measured})
    for (const InstructionId n : c.program.instructions.ids()) {
      t->start[n] *= 2;
      t->end[n] *= 2;
    }
  for (const int device : {0, 1})
    for (const InstructionKind kind : {InstructionKind::Forward, InstructionKind::Backward, InstructionKind::Update})
      c.wait(0.5, kind, device);
  REQUIRE(c.waits().size() == 4);
  CHECK(c.waits().front().simulated == doctest::Approx(19));
  CHECK(c.waits().front().waited == doctest::Approx(19));
  CHECK(c.doubt().empty());
  c.wait(0.6, InstructionKind::Backward, 0);  // 1.2 s more of 38 s.
  CHECK(c.doubt().empty());
  c.wait(0.7, InstructionKind::Backward, 0);  // 2.4 s more.
  CHECK(c.doubt().find("longer for a core than the simulation has it") != std::string::npos);
  CHECK(c.doubt().find("21.4 s in the median, 19 s simulated") != std::string::npos);
}

}  // namespace stagecraft::core_waits_test
