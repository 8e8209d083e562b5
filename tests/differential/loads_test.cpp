// Micro-batches with random loads: the longest path, SimGrid and fluid give the same times without contention, no
// shorter than the work of a device.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/loads.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::loads_differential_test {
namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

/// Whether each stage has the same replicas and one sample of a micro-batch for each.
bool may_have_loads(const Plan& plan) {
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& s) {
    return s.share == Share::Samples && s.replicas() == 1 && s.micro_batch_size == 1;
  });
}

}  // namespace

TEST_CASE("random loads take the same time on ideal, simgrid and fluid, at least the work of the busiest device") {
  test::Draw draw{Rng(53, "loads")};
  int compared = 0;
  for (int trial = 0; compared < test::trials(200, 60); ++trial) {
    REQUIRE(trial < 100000);
    test::RandomCase c = test::random_case(draw, 6);
    if (!may_have_loads(c.plan) || !c.options.overlap) continue;
    std::vector<double> loads;
    const int iterations = draw(1, 2);
    for (int i = 0; i < c.plan.mini_batch * iterations; ++i) loads.push_back(0.01 * draw(1, 400));
    test::set_proportional_loads(c.plan, c.costs, loads);
    CAPTURE(to_text(c));
    const Program program = test::program_of(c);
    Cluster cluster = test::star(program.devices, 1e9, 1e-5, Duplex::Unshared);
    const Timeline ideal = run("ideal", program, cluster);
    CHECK(test::difference(program, ideal, run("simgrid", program, cluster)) == "");
    CHECK(test::difference(program, ideal, run("fluid", program, cluster)) == "");
    IdVector<DeviceId, double> work(program.devices, 0);
    for (const Instruction& i : program.instructions)
      if (i.is_compute()) work[i.device] += i.duration.value;
    for (const double w : work) CHECK(ideal.last_end().value >= w * (1 - 1e-12));
    ++compared;
  }
}

}  // namespace stagecraft::loads_differential_test
