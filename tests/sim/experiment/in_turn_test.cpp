// Replicas that take whole micro-batches in turn (PipeDream, 1F1B-RR).

#include <doctest/doctest.h>

#include <numeric>

#include "backends/backend.hpp"
#include "sim/core/random.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/result/report.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::in_turn_test {
namespace {

Schedule pipedream(const Plan& plan, int iterations, const char* update) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "pipedream");
  const auto options = options_of(def, {std::string("update=") + update});
  const StageCosts costs = uniform_costs(plan, test::times(1, 1));
  return build_schedule(
      def, {.plan = plan, .costs = costs, .iterations = iterations, .options = read_options(def, &*options)});
}

Report played(const Schedule& schedule, const Plan& plan, const StageCosts& costs, int iterations) {
  const Program program = test::lowered(schedule, plan, costs, test::pure_delays(iterations), "stash");
  const Cluster cluster = test::delay_cluster(program.devices, 0);
  return measure(program, get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {}), cluster);
}

}  // namespace

TEST_CASE("replicas that take turns run whole micro-batches, each once") {
  Stage stage = test::in_turn({3}, 6).stages.front();
  stage.micro_batch_size = 2;
  for (int micro = 0; micro < 6; ++micro)
    for (int r = 0; r < 3; ++r) {
      const SampleRange s = samples_of(stage, micro, r);
      CHECK(s.low == 2 * micro);
      CHECK(s.high - s.low == (micro % 3 == r ? 2 : 0));
      CHECK(takes_part(stage, micro, r) == (micro % 3 == r));
      CHECK(samples_at_once(stage, r) == 2);
    }
}

TEST_CASE("2-1: each replica has its own row, with an update for each round") {
  const auto rows = test::rows_of(pipedream(test::in_turn({2, 1}, 4), 1, "micro_batch"));
  CHECK(rows == std::vector<std::string>{"0F0 0F2 0B0 0U0 0B2 0U1", "0F1 0F3 0B1 0U0 0B3 0U1",
                                         "1F0 1B0 1U0 1F1 1B1 1U1 1F2 1B2 1U2 1F3 1B3 1U3"});
  CHECK(test::rows_of(pipedream(test::in_turn({2, 1}, 4), 1, "iteration"))[2] == "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1U0");
}

/// Period of an iteration of two rounds, divided by its length when all devices are busy, 6 * round seconds. F + B of a
/// stage with r replicas take 3 r seconds; `round` is the least common multiple of all r.
double period(const std::vector<int>& replicas, const char* update) {
  int round = 1;
  for (const int r : replicas) round = std::lcm(round, r);
  const Plan plan = test::in_turn(replicas, 2 * round);
  StageCosts costs;
  for (const int r : replicas) costs.add(std::vector<StageCost>(r, test::times(r, 2 * r)));
  return played(pipedream(plan, 8, update), plan, costs, 8).period.value / (6 * round);
}

TEST_CASE("with replicas of the first stage, or of all, every device is always busy") {
  for (const std::vector<int>& replicas : {std::vector<int>{2, 1}, {3, 1}, {15, 1}, {2, 2}, {3, 3, 3}})
    for (const char* update : {"micro_batch", "iteration"}) CHECK(period(replicas, update) == doctest::Approx(1));
}

TEST_CASE("with replicas of a later stage, PipeDream's in-flight limit leaves devices idle") {
  // 1-2 by hand: the first stage has ceil(3 / 1) = 3 in flight and does B0 at 7..9, F3 at 9..10, so that the second
  // replica, which is through with micro-batch 1 at 8, waits until 10; and so on in every round.
  for (const char* update : {"micro_batch", "iteration"}) {
    CHECK(period({1, 2}, update) == doctest::Approx(15.0 / 12));
    CHECK(period({1, 1, 2}, update) == doctest::Approx(15.0 / 12));
  }
}

TEST_CASE("orders of random chains are valid and never faster than the busiest replica") {
  Rng rng(11, "turns");
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> replicas;
    int round = 1;
    for (int s = rng.integer(1, 4); s > 0; --s) {
      replicas.push_back(rng.integer(1, 4));
      round = std::lcm(round, replicas.back());
    }
    const Plan plan = test::in_turn(replicas, round * rng.integer(1, 3));
    StageCosts costs;
    double bound = 0;
    for (const int r : replicas) {
      const double forward = rng.integer(1, 9);
      costs.add(std::vector<StageCost>(r, test::times(forward, 2 * forward)));
      bound = std::max(bound, plan.mini_batch * 3 * forward / r);
    }
    for (const char* update : {"micro_batch", "iteration"}) {
      const Schedule schedule = pipedream(plan, 4, update);
      REQUIRE(validate(schedule, plan, {.iterations = 4}).empty());
      CHECK(played(schedule, plan, costs, 4).period.value >= bound * (1 - 1e-12));
    }
    for (const char* name : {"1f1b", "gpipe", "eager-1f1b", "inference", "spp-pe"}) {
      const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
      const Schedule schedule = build_schedule(def, {.plan = plan, .costs = costs, .iterations = 2});
      CHECK(validate(schedule, plan, {.iterations = 2, .trains = def.trains}).empty());
    }
  }
}

TEST_CASE("a message goes to the replica whose turn it is") {
  const Plan plan = test::in_turn({2, 3}, 6);
  const Program program = test::lowered(pipedream(plan, 1, "iteration"), plan, uniform_costs(plan, test::times(1, 1)),
                                        test::pure_delays(), "stash");
  int sends = 0;
  for (const Transfer& t : program.transfers) {
    const Instruction &send = program.at(t.send), &receive = program.at(t.receive);
    CHECK(send.micro_batch() == program.receiving_micro_batch(t));
    const DeviceId front{send.micro_batch() % 2}, back{2 + send.micro_batch() % 3};
    CHECK(send.device == (program.moves_gradient(send) ? back : front));
    CHECK(receive.device == (program.moves_gradient(send) ? front : back));
    ++sends;
  }
  CHECK(sends == 12);
}

TEST_CASE("an op of another replica's turn is refused") {
  const Plan plan = test::in_turn({2}, 2);
  const auto problems = validate(test::schedule_from({"0F0 0B0 0U0", "0F0 0B0 0U0"}), plan, {});
  REQUIRE(!problems.empty());
  CHECK(to_text(problems.front()) == "wrong-rank: rank 1, column 0, 0F0: micro-batch 0 of stage 0 is for rank 0");
  CHECK(validate(test::schedule_from({"0F0 0B0 0U0", "0F1 0B1 0U0"}), plan, {}).empty());
  const auto early =
      validate(test::schedule_from({"0F0 0B0 0U0 0F2 0B2", "0F1 0B1 0F3 0B3 0U0"}), test::in_turn({2}, 4), {});
  REQUIRE(!early.empty());
  CHECK(to_text(early.front()) == "local-order: rank 0, column 2, 0U0: update 0 comes after 1 backwards instead of 2");
}

TEST_CASE("plans, orders and weights that cannot have replicas in turn are refused") {
  const auto message = [](auto&& act) { return test::input_error_of(act); };
  CHECK(
      message([] {
        check_plan(test::in_turn({2, 1}, 3));
      }) ==
      "0: stage 's0': its 2 replicas cannot take equal numbers of 3 micro-batches [set run.micro_batches to a multiple "
      "of 2, or write share: samples]\n");
  const Plan plan = test::in_turn({2, 1}, 4);
  const StageCosts costs = uniform_costs(plan, test::times(1, 1));
  for (const char* name : {"graph", "seq1f1b", "zb-h1", "synthesised"}) {
    CAPTURE(name);
    const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
    CHECK(message([&] { build_schedule(def, {.plan = plan, .costs = costs}); }).find("take micro-batches in turn") !=
          std::string::npos);
  }
  const Schedule schedule = pipedream(plan, 2, "micro_batch");
  CHECK_THROWS_WITH_AS(WeightReads(schedule, plan, test::policy("vertical-sync")),
                       doctest::Contains("follow from the number of stages"), InputError);
  CHECK_NOTHROW(WeightReads(schedule, plan, test::policy("stash")));
}

}  // namespace stagecraft::in_turn_test
