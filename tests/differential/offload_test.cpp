// Copies to host memory on random programs: the longest path, SimGrid and fluid give the same times without contention,
// late forwards delay nothing, and devices on one host link share it.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/offload.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::offload_differential_test {
namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

int copies(const Program& program) {
  return static_cast<int>(std::count_if(program.collectives.begin(), program.collectives.end(),
                                        [](const CollectiveCall& c) { return c.purpose == Purpose::Stash; }));
}

/// Two replicas of one stage with 8 micro-batches, forward first.
Program gpipe_of_two(const Plan& plan) {
  return test::program_of("gpipe", plan, uniform_costs(plan, test::stashing(1, 2)), test::pure_delays());
}

}  // namespace

TEST_CASE("random copies take the same time on ideal, simgrid and fluid; late forwards delay nothing") {
  test::Draw draw{Rng(54, "offload")};
  int compared = 0, moved = 0;
  for (int trial = 0; compared < test::trials(200, 60); ++trial) {
    REQUIRE(trial < 100000);
    test::RandomCase c = test::random_case(draw, 6);
    if (!c.options.overlap) continue;
    for (StageCost& cost : c.costs.values()) cost.memory.stash = Bytes{test::kStash};
    CAPTURE(to_text(c));
    const Program early = test::program_of(c);
    Cluster cluster = test::star(early.devices, 1e9, 1e-5, Duplex::Unshared);
    const double longest = test::run_ideal(early, cluster).last_end().value;
    test::add_hosts(cluster, .002 * draw(1, 100) * longest, .002 * draw(1, 100) * longest, draw(0, 1) > 0);
    const double share = .25 * draw(1, 4);
    const test::Moves moves{.share = test::same_share(share), .ahead = draw(1, 3), .late = draw(0, 1) > 0};
    const Program program = test::offloaded(early, c.plan, cluster, moves);
    const Timeline ideal = run("ideal", program, cluster);
    CHECK(test::difference(program, ideal, run("simgrid", program, cluster)) == "");
    CHECK(test::difference(program, ideal, run("fluid", program, cluster)) == "");
    const Program late = test::offloaded(early, c.plan, cluster, {.share = test::same_share(0), .late = true});
    CHECK(test::run_ideal(late, cluster).last_end().value <= longest * (1 + 1e-9));
    ++compared, moved += copies(program) > 0;
  }
  CHECK(2 * moved > compared);
}

TEST_CASE("two devices on one link to their host have half of its rate each, on fluid and simgrid") {
  Plan plan = chain_plan(1, 1, 16);
  plan.stages.front().place_on({DeviceId{0}, DeviceId{1}});
  plan.stages.front().micro_batch_size = 2;
  Cluster alone = test::star(2, 1e9, 0, Duplex::Unshared);
  test::add_hosts(alone, .25, .25);
  Cluster shared = alone;
  shared.devices[DeviceId{1}].down = shared.devices[DeviceId{0}].down;
  shared.devices[DeviceId{1}].up = shared.devices[DeviceId{0}].up;
  const Program program = test::offloaded(gpipe_of_two(plan), plan, shared, {.share = test::same_share(1)});
  REQUIRE(copies(program) > 0);
  for (const char* backend : {"fluid", "simgrid"}) {
    const Timeline one = run(backend, program, alone), two = run(backend, program, shared);
    for (const CollectiveCall& c : program.collectives) {
      if (c.purpose != Purpose::Stash) continue;
      CHECK(one.end[c.first] - one.start[c.first] == doctest::Approx(.25).epsilon(1e-9));
      CHECK(two.end[c.first] - two.start[c.first] == doctest::Approx(.5).epsilon(1e-9));
    }
  }
}

}  // namespace stagecraft::offload_differential_test
