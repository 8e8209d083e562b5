// Several walks that pass messages as if they were processes: the same bits as one, and failures that all hear of.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "backends/real/clocks.hpp"
#include "backends/real/session.hpp"
#include "tests/backends/real/memory_world.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/buckets.hpp"
#include "tests/support/collective_steps.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/patience.hpp"

namespace stagecraft::together_test {
namespace {

struct ProcessResults {
  Learnt learnt;
  std::vector<std::string> errors;  ///< By process; empty: it went well.
};

std::string caught(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

ProcessResults run_together(int processes, const Program& program, int lost = -1, double timeout = test::kHung) {
  test::MemoryWorld world;
  world.size = processes;
  world.lost = lost;
  real::ExecutorOptions options;
  options.timeout = timeout;
  ProcessResults result;
  result.errors.resize(static_cast<std::size_t>(processes));
  std::vector<std::unique_ptr<real::DevicePlacement>> dealings;
  std::vector<std::unique_ptr<real::Session>> sessions;
  for (int r = 0; r < processes; ++r) {
    const real::DevicePlacement& placement =
        *dealings.emplace_back(std::make_unique<real::DevicePlacement>(program, World{r, processes}));
    sessions.push_back(std::make_unique<real::Session>(program, cpu::make_kernels,
                                                       [&placement](DeviceId d) { return placement.here(d); }));
  }
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < sessions.size(); ++r)
    threads.emplace_back([&, r] {
      test::MemoryTransport transport(world, program, *dealings[r], *sessions[r]);
      result.errors[r] = caught([&] { real::run_program(program, *sessions[r], &transport, options); });
    });
  for (std::thread& t : threads) t.join();
  std::vector<real::Records> records;
  for (const auto& session : sessions) records.push_back(real::records_from(real::to_bytes(session->records())));
  std::reverse(records.begin(), records.end());
  if (lost < 0) result.learnt = sessions.front()->learnt(real::merged(std::move(records)));
  return result;
}

void compare(std::string_view schedule, const ModelGraph& model, const Plan& plan, const WeightsRule& rule,
             const Training& training, LoweringOptions lowering = {}, bool buckets = false) {
  Program program_alone = test::real_program(schedule, plan, rule, 6, nullptr, lowering);
  if (buckets) program_alone = test::in_buckets(program_alone, {0.25, 0.75}, {0.5, 1});
  const test::RealRun alone = test::really_run(std::move(program_alone), model, plan, rule, training);
  const Program& program = alone.program;
  for (const int processes : {2, 3}) {
    CAPTURE(schedule);
    CAPTURE(processes);
    const ProcessResults together = run_together(processes, program);
    for (const std::string& error : together.errors) REQUIRE(error == "");
    CHECK(together.learnt.losses == alone.learnt().losses);
    CHECK(together.learnt.weights == alone.learnt().weights);
    CHECK(together.learnt.versions == alone.learnt().versions);
    REQUIRE(together.learnt.evaluations.size() == alone.learnt().evaluations.size());
    for (std::size_t i = 0; i < alone.learnt().evaluations.size(); ++i)
      CHECK(together.learnt.evaluations[i].loss == alone.learnt().evaluations[i].loss);
    for (std::size_t d = 0; d < alone.learnt().memory.size(); ++d)
      CHECK(together.learnt.memory[DeviceId{d}].weights.value == alone.learnt().memory[DeviceId{d}].weights.value);
  }
}

}  // namespace

TEST_CASE("processes share the devices that have work, in blocks of neighbours") {
  Plan plan = test::stage_each(test::deep_net(5), 4);
  for (std::size_t s = 0; s < 5; ++s)
    plan.stages[StageId{s}].place_on({DeviceId{2 * static_cast<std::int64_t>(s) + 1}});
  const Program program = test::real_program("1f1b", plan, test::policy("flush"), 1);
  const real::DevicePlacement two(program, {1, 2});
  std::vector<int> owners;
  for (const int d : {1, 3, 5, 7, 9}) owners.push_back(two.owner(DeviceId{d}));
  CHECK(owners == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(two.owner(DeviceId{4}) == -1);
  CHECK(!two.here(DeviceId{5}));
  CHECK(two.here(DeviceId{7}));
  for (const int processes : {1, 2, 3, 4, 5}) {
    std::vector<int> count(static_cast<std::size_t>(processes), 0);
    const real::DevicePlacement placement(program, {0, processes});
    for (const int d : {1, 3, 5, 7, 9}) ++count[placement.owner(DeviceId{d})];
    const auto [low, high] = std::minmax_element(count.begin(), count.end());
    CHECK(*high - *low <= 1);
  }
  CHECK_THROWS_WITH_AS(real::DevicePlacement(program, {0, 6}),
                       doctest::Contains("6 processes were started, but only 5 devices have anything to do"),
                       InputError);
}

TEST_CASE("times of a clock that is ahead and too fast come out right within the uncertainty") {
  // The clock here shows 1000 + 1.0001 t when that of the first process shows t; questions take 3 ms, answers 1 ms.
  const auto here = [](double t) { return 1000 + 1.0001 * t; };
  const auto read = [&](double t) { return real::clock_reading(here(t), t + 0.003, here(t + 0.004)); };
  const real::ClockReading before = read(5), after = read(25);
  CHECK(before.uncertainty == doctest::Approx(0.002).epsilon(0.001));
  for (const double t : {0.0, 5.0, 12.0, 25.0, 30.0}) {
    const double error = real::on_first_clock(here(t), before, after) - t;
    CHECK(std::abs(error) < before.uncertainty);
    CHECK(error == doctest::Approx(0.001).epsilon(0.01));  // Half of what a question takes longer than its answer.
  }
}

TEST_CASE("messages between processes change no bit: schedules, transfers, replicas, versions") {
  const ModelGraph model = test::deep_net(4, 6, 8, 3);
  Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  training.evaluate_every = 2;
  const WeightsRule& flush = test::policy("flush");
  for (const bool rendezvous : {true, false}) {
    LoweringOptions lowering;
    lowering.rendezvous = rendezvous;
    compare("1f1b", model, test::stage_each(model, 4), flush, training, lowering);
    compare("pipedream", model, test::stage_each(model, 1), test::policy("stash"), training, lowering);
  }
  Plan replicas = test::stage_each(model, 4, 6);
  replicas.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{4}, DeviceId{5}});
  replicas.stages[StageId{3}].place_on({DeviceId{3}, DeviceId{6}});
  compare("gpipe", model, replicas, flush, training);
  compare("gpipe", model, replicas, flush, training, {}, true);
  training.slots = true;
  compare("gpipe", model, replicas, flush, training);
}

TEST_CASE("a message that goes astray: every process says what it waits for, or hears that it is over") {
  const ModelGraph model = test::deep_net(3, 6, 8, 3);
  const Plan plan = test::stage_each(model, 4);
  const WeightsRule& flush = test::policy("flush");
  const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  const Program program =
      test::with_workload(test::real_program("gpipe", plan, flush, 1), model, plan, flush, training);
  const int lost = program.at(test::find(program, "1>2:1F2")).transfer();
  std::vector<std::string> errors;
  const auto all_wait = [&](double timeout) {
    errors = run_together(3, program, lost, timeout).errors;
    for (const std::string& error : errors) CHECK(error.starts_with("nothing has moved for "));
    CHECK(errors[0].find("device 1") == std::string::npos);
    return errors[1].find("device 1: 1>2:1F2 has not ended") != std::string::npos &&
           errors[2].find("device 2: 2F2 waits for 2<1:1F2") != std::string::npos;
  };
  CAPTURE(errors[1]);
  CAPTURE(errors[2]);
  CHECK(test::holds_after_some_timeout(all_wait));
}

TEST_CASE("what fails in one process ends the others without a word of their own") {
  const ModelGraph model = test::deep_net(3, 6, 8, 3);
  const Plan plan = test::stage_each(model, 4);
  const WeightsRule& flush = test::policy("flush");
  const Training training = test::training_of(OptimizerKind::Sgd, 1e6, "teacher");
  const Program program =
      test::with_workload(test::real_program("gpipe", plan, flush, 40), model, plan, flush, training);
  const ProcessResults together = run_together(3, program);
  int diverged = 0;
  for (const std::string& error : together.errors) {
    const bool diverged_here =
        error.find("is not a finite number") != std::string::npos || error.find("not finite") != std::string::npos;
    diverged += diverged_here;
    CHECK((diverged_here || error == FailedElsewhere().what()));
  }
  CHECK(diverged >= 1);
}

TEST_CASE("gradients of replicas in several processes that are scattered, gathered, exchanged or broadcast") {
  const ModelGraph model = test::deep_net(3, 6, 9, 3);
  Plan plan = test::stage_each(model, 4, 3);
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}, DeviceId{4}});
  const WeightsRule rule = test::policy("flush");
  const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  const Program program = test::real_program("1f1b", plan, rule, 3);
  const test::RealRun alone = test::really_run(program, model, plan, rule, training);
  for (const auto& kinds : test::sums_in_steps())
    for (const int processes : {2, 3}) {
      const Program steps = test::in_steps(program, kinds);
      const ProcessResults together = run_together(processes, test::with_workload(steps, model, plan, rule, training));
      for (const std::string& error : together.errors) REQUIRE(error == "");
      CHECK(together.learnt.losses == alone.learnt().losses);
      CHECK(together.learnt.weights == alone.learnt().weights);
    }
}

}  // namespace stagecraft::together_test
