// Lowering with blocking communication, which does not overlap computation.

#include <doctest/doctest.h>

#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::blocking_test {
namespace {

LoweringOptions blocking(bool rendezvous, int iterations = 1) {
  LoweringOptions options;
  options.overlap = false;
  options.rendezvous = rendezvous;
  options.iterations = iterations;
  return options;
}

Program two_stages(bool rendezvous) {
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  return test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2)), blocking(rendezvous));
}

}  // namespace

TEST_CASE("rendezvous: an op waits for the sends of the op before and its own receives, posted together") {
  CHECK(test::listing(two_stages(true)) ==
        "0F0\n"
        "0>1:0F0 after 0F0\n"
        "1<0:0F0\n"
        "1F0 after 1<0:0F0\n"
        "1B0 after 1F0\n"
        "0F1 after 0F0, 0>1:0F0\n"
        "0>1:0F1 after 0F1, 0>1:0F0\n"
        "1<0:0F1 after 1B0\n"
        "1>0:1B0 after 1B0\n"
        "0<1:1B0 after 0F1\n"
        "0B0 after 0F1, 0>1:0F1, 0<1:1B0\n"
        "1F1 after 1B0, 1<0:0F1, 1>0:1B0\n"
        "1B1 after 1F1\n"
        "1>0:1B1 after 1B1, 1>0:1B0\n"
        "0<1:1B1 after 0B0\n"
        "0B1 after 0B0, 0<1:1B1\n"
        "0U0 after 0B1\n"
        "1U0 after 1B1, 1>0:1B1\n");
}

TEST_CASE("eager: a send starts when its data is ready, and the sender still waits for it") {
  CHECK(test::listing(two_stages(false)) ==
        "0F0\n"
        "0>1:0F0 after 0F0\n"
        "1<0:0F0\n"
        "1F0 after 1<0:0F0\n"
        "1B0 after 1F0\n"
        "1>0:1B0 after 1B0\n"
        "0F1 after 0F0, 0>1:0F0\n"
        "0>1:0F1 after 0F1, 0>1:0F0\n"
        "1<0:0F1 after 1B0\n"
        "0<1:1B0 after 0F1\n"
        "0B0 after 0F1, 0>1:0F1, 0<1:1B0\n"
        "1F1 after 1B0, 1>0:1B0, 1<0:0F1\n"
        "1B1 after 1F1\n"
        "1>0:1B1 after 1B1, 1>0:1B0\n"
        "0<1:1B1 after 0B0\n"
        "0B1 after 0B0, 0<1:1B1\n"
        "0U0 after 0B1\n"
        "1U0 after 1B1, 1>0:1B1\n");
}

TEST_CASE("with blocking communication each device has one stream") {
  CHECK(to_text(two_stages(true)) ==
        "device 0 compute        | 0F0 0>1:0F0 0F1 0>1:0F1 0<1:1B0 0B0 0<1:1B1 0B1 0U0\n"
        "device 1 compute        | 1<0:0F0 1F0 1B0 1<0:0F1 1>0:1B0 1F1 1B1 1>0:1B1 1U0\n");
}

TEST_CASE("a deadlock names the waiting devices and their ops, and what would help") {
  // Two stages on each of two ranks, all micro-batches of the first before the second: rank 1 cannot get rid of 1F0
  // while rank 0 cannot get rid of 0F2.
  const Plan plan = chain_plan(4, 2, 4);
  const StageCosts costs = uniform_costs(plan, test::times(1, 1));
  CHECK_NOTHROW(test::program_of("inference", plan, costs, blocking(false)));
  try {
    test::program_of("inference", plan, costs, blocking(true));
    FAIL("a deadlock went unnoticed");
  } catch (const Infeasible& error) {
    CHECK(error.code() == "deadlock");
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find("rank 0 before 0F3 waits to send 0F2 to rank 1; rank 1 before 1F1 waits to send 1F0 to rank 0") !=
          std::string::npos);
    CHECK(what.find("overlap: true") != std::string::npos);
  }
  const Plan three = chain_plan(4, 2, 3);
  CHECK_NOTHROW(test::program_of("inference", three, uniform_costs(three, test::times(1, 1)), blocking(true)));
}

TEST_CASE("an order that can never run is a cycle with any communication") {
  const Plan plan = chain_plan(2, 2, 2);
  const Schedule schedule = test::schedule_from({"0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"});
  for (const bool overlap : {true, false}) {
    LoweringOptions options;
    options.overlap = overlap;
    try {
      lower(schedule, plan, uniform_costs(plan, test::times(1, 1)), test::policy("flush"), options);
      FAIL("a cycle went unnoticed");
    } catch (const Infeasible& error) {
      CHECK(error.code() == "cycle");
      CHECK(std::string(error.what()).find("0B0 (rank 0) waits for 1B0") != std::string::npos);
    }
  }
}

TEST_CASE("a replica may be an iteration ahead of the other") {
  Plan plan = chain_plan(1, 1, 2);
  plan.stages[StageId{0}].micro_batch_size = 2;
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}});
  for (const bool rendezvous : {true, false}) {
    const Program program =
        test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 1)), blocking(rendezvous, 3));
    CHECK(program.collectives.size() == 3);
    CHECK(program.size() == 3 * 2 * 4);
  }
}

}  // namespace stagecraft::blocking_test
