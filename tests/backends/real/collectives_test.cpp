// All kinds of collectives on numbers: against sums and permutations element by element, in one walk and in several
// that pass messages as if they were processes; and training with its sums done in steps, to the last bit.

#include <doctest/doctest.h>

#include <thread>

#include "tests/backends/real/collective_numbers.hpp"
#include "tests/backends/real/memory_world.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/collective_steps.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::collectives_test {

TEST_CASE("on threads each kind of collective gives the sums and permutations of its definition") {
  Rng rng(71, "collectives");
  for (int trial = 0; trial < 40; ++trial) {
    const test::CollectiveCase c = test::random_collectives(1 + trial % 5, rng);
    const auto here = [](DeviceId) { return true; };
    for (const bool one_thread : {false, true}) {
      test::CollectiveNumbers numbers(c.program, c.expected, here);
      real::ExecutorOptions options;
      options.one_thread = one_thread;
      real::run_program(c.program, numbers, nullptr, options);
      CHECK(test::wrong_results(c, numbers, here) == 0);
    }
  }
}

TEST_CASE("between processes each kind of collective gives the same bits as on threads") {
  Rng rng(72, "processes");
  for (int trial = 0; trial < 24; ++trial) {
    const int devices = 2 + trial % 4, processes = std::min(devices, 2 + trial % 2);
    const test::CollectiveCase c = test::random_collectives(devices, rng);
    test::MemoryWorld world;
    world.size = processes;
    std::vector<std::thread> threads;
    for (int r = 0; r < processes; ++r)
      threads.emplace_back([&, r] {
        const real::DevicePlacement placement(c.program, World{r, processes});
        const auto here = [&](DeviceId d) { return placement.here(d); };
        test::CollectiveNumbers numbers(c.program, c.expected, here);
        test::MemoryTransport transport(world, c.program, placement, numbers);
        real::run_program(c.program, numbers, &transport, {});
        CHECK(test::wrong_results(c, numbers, here) == 0);
      });
    for (std::thread& t : threads) t.join();
  }
}

TEST_CASE("gradients that are scattered, gathered, exchanged or broadcast equal an all-reduce, bit by bit") {
  const ModelGraph model = test::deep_net(3, 6, 9, 3);
  for (const int replicas : {2, 3}) {
    Plan plan = test::stage_each(model, 4, replicas);
    std::vector<DeviceId> several = plan.stages[StageId{1}].leaders;
    for (int r = 1; r < replicas; ++r) several.emplace_back(2 + r);
    plan.stages[StageId{1}].place_on(several);
    const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
    const Program program = test::real_program("1f1b", plan, test::policy("flush"), 3);
    const test::RealRun plain = test::really_run(program, model, plan, test::policy("flush"), training);
    for (const auto& kinds : test::sums_in_steps())
      for (const bool one_thread : {false, true}) {
        Program steps = test::in_steps(program, kinds);
        CHECK_NOTHROW(check_program(steps));
        const test::RealRun run =
            test::really_run(std::move(steps), model, plan, test::policy("flush"), training, one_thread);
        CHECK(run.learnt().losses == plain.learnt().losses);
        CHECK(run.learnt().weights == plain.learnt().weights);
      }
  }
}

}  // namespace stagecraft::collectives_test
