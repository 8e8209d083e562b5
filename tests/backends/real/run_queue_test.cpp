#include "backends/real/run_queue.hpp"

#include <doctest/doctest.h>

#include "backends/real/program_executor.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::run_queue_test {
namespace {

struct Nothing : real::Actions {
  void compute(InstructionId) override {}
  void carry(int) override {}
  void collective(int) override {}
};

}  // namespace

TEST_CASE("the time in a run queue is the second number of schedstat") {
  CHECK(real::run_queue_seconds("4969837 2791045 80\n") == doctest::Approx(2.791045e-3).epsilon(1e-12));
  CHECK(real::run_queue_seconds("5 0 1\n") == 0.0);
  CHECK(real::run_queue_seconds("0 3000000000 1") == doctest::Approx(3).epsilon(1e-12));
}

TEST_CASE("a kernel that does not count, and text of another form, give nothing") {
  for (const char* text : {"0 0 0\n", "", "4969837", "4969837 2791045", "a b c", "1 2 x", "1,2,3"}) {
    CAPTURE(text);
    CHECK_FALSE(real::run_queue_seconds(text));
  }
}

TEST_CASE("a meter counts waits in a computation, and before it what is more than a thread takes to wake") {
  real::CoreWaitMeter meter(5);
  meter.add_pause(5.00008);  // 80 us to wake.
  CHECK(meter.finish(5.00108) == doctest::Approx(1e-3));
  CHECK(meter.finish(5.00308) == doctest::Approx(2e-3));  // It followed at once.
  meter.add_pause(5.01308);                               // 10 ms in a queue, of which 100 us are for waking.
  CHECK(meter.finish(5.01408) == doctest::Approx(10.9e-3));
  CHECK(meter.finish(5.01408) == 0);
}

TEST_CASE("a run on threads knows the waits of all instructions or of none, and messages have none") {
  const Plan plan = chain_plan(2, 2, 3);
  const Program p = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2, 0.5)), test::pure_delays(3));
  Nothing actions;
  const real::Times times = real::run_program(p, actions, nullptr, {});
  CHECK(times.core_waits.empty() == !real::RunQueue().seconds().has_value());
  if (times.core_waits.empty()) return;
  REQUIRE(times.core_waits.size() == p.size());
  for (const InstructionId n : p.instructions.ids()) {
    CHECK(times.core_waits[n] >= 0);
    if (!p.at(n).is_compute()) CHECK(times.core_waits[n] == 0);
  }
}

}  // namespace stagecraft::run_queue_test
