#include <doctest/doctest.h>

#include "sim/report/validation.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;

namespace {

struct Case {
  Cluster cluster = test::star(2, 1e9, 1e-3);
  Program program = test::program_of("1f1b", chain_plan(2, 2, 3),
                                     uniform_costs(chain_plan(2, 2, 3), test::times(1, 2, 0.5)), test::pure_delays(5));
  Timeline simulated = test::run_ideal(program, cluster);
  Report report = measure(program, simulated, cluster);
};

}  // namespace

TEST_CASE("a simulation compared with itself is right everywhere") {
  const Case c;
  const Validation v = compare(c.program, c.simulated, c.report, c.simulated, c.cluster);
  CHECK(v.iteration.error() == 0);
  CHECK(v.iteration.count == 4);
  for (const auto* list : {&v.kinds, &v.ops, &v.devices})
    for (const Pair& p : *list) {
      CAPTURE(p.name);
      CHECK(p.error() == 0);
      CHECK(p.measured > 0);
    }
  CHECK(to_text(v, 0.05).find("yes, within 5 %") != std::string::npos);
}

TEST_CASE("the op that is off is named first, and messages are taken to the start of the op they let go") {
  const Case c;
  Timeline measured = c.simulated;
  for (std::size_t n = 0; n < c.program.size(); ++n) {
    measured.start[n] *= 2;
    measured.end[n] *= 2;
  }
  const Validation v = compare(c.program, c.simulated, c.report, measured, c.cluster);
  CHECK(v.iteration.error() == doctest::Approx(-0.5));
  REQUIRE_FALSE(v.ops.empty());
  CHECK(v.ops.front().name.ends_with(" B"));  // Three micro-batches of two seconds each.
  CHECK(v.kinds.back().name == "message");
  CHECK(v.kinds.back().simulated == doctest::Approx(2e-3));  // Two cables of a millisecond each.
  CHECK(v.kinds.back().measured == doctest::Approx(4e-3));
  CHECK(to_text(v, 0.05).find("no, not within 5 %") != std::string::npos);
}
