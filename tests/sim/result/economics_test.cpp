#include "sim/result/economics.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"

namespace stagecraft::economics_test {

constexpr double kHour = 3600, kDay = 24 * kHour;

TEST_CASE("where failures are rare, the best interval is Young's, and goodput is t / (t + d)") {
  const Seconds mtbf{1e12}, checkpoint{60};
  const Seconds interval = best_checkpoint_interval(mtbf, checkpoint);
  // The terms after the first add 1/3 sqrt(d / 2M) of it, here 2e-6, and take d = 60 s of 1.1e7 s, here 5e-6.
  CHECK(interval.value == doctest::Approx(std::sqrt(2 * 60 * 1e12)).epsilon(1e-5));
  CHECK(goodput({1e15}, checkpoint, {0}, {540}) == doctest::Approx(0.9).epsilon(1e-9));
}

TEST_CASE("no other interval has noticeably more goodput than the best one") {
  for (const double m : {1 * kHour, 10 * kHour, 10 * kDay}) {
    const Seconds mtbf{m}, checkpoint{120}, restart{300};
    const Seconds best = best_checkpoint_interval(mtbf, checkpoint);
    const double best_goodput = goodput(mtbf, checkpoint, restart, best);
    // The estimate is a series in d / M, which is at most 1/30 here. Near an optimum its error counts squared.
    for (double factor = 0.2; factor < 5; factor *= 1.01)
      CHECK(goodput(mtbf, checkpoint, restart, factor * best) <= best_goodput * 1.002);
  }
}

TEST_CASE("checkpoints as long as two times between failures: the interval is that time") {
  CHECK(best_checkpoint_interval({100}, {200}).value == 100);
}

TEST_CASE("cost and duration follow from price, devices and tokens per second") {
  TrainingBudget budget;
  budget.price = 3.6;  // 0.001 dollars a second.
  budget.tokens = 1e9;
  const Economics e = economics(budget, {{"gpu", 8}}, 1e6);
  CHECK(e.duration.value == doctest::Approx(1000));           // 1e9 tokens at 1e6/s.
  CHECK(e.dollars == doctest::Approx(8));                     // 8 devices for 1000 s.
  CHECK(e.dollars_per_billion_tokens == doctest::Approx(8));  // These tokens are 10^9.
  CHECK(e.goodput == 1);
}

TEST_CASE("each device type has its price, or the one of all types that are not listed") {
  TrainingBudget budget;
  budget.price = 1, budget.prices = {{"new", 4}};
  CHECK(dollars_per_hour(budget, {{"new", 2}, {"old", 3}}) == 11);  // 2 x 4 + 3 x 1
  budget.price = 0;
  CHECK_THROWS_WITH_AS(dollars_per_hour(budget, {{"new", 2}, {"old", 3}}), doctest::Contains("'old' has no price"),
                       InputError);
  CHECK_THROWS_WITH_AS(check_prices(budget, {"old"}), doctest::Contains("no device type 'new'"), InputError);
}

TEST_CASE("failures make a training longer and dearer by its goodput") {
  TrainingBudget budget;
  budget.price = 3.6, budget.tokens = 1e9;
  const Economics without = economics(budget, {{"gpu", 8}}, 1e6);
  budget.failures = {.mtbf = {8 * kDay}, .checkpoint = {60}, .restart = {600}};
  const Economics with = economics(budget, {{"gpu", 8}}, 1e6);
  // Eight devices: one failure a day. First order: d / t + t / 2M + R / M with t = sqrt(2 d M) = 3220 s.
  const double lost = 60 / 3220.0 + 3220 / (2 * kDay) + 600 / kDay;
  CHECK(with.goodput == doctest::Approx(1 - lost).epsilon(0.002));
  CHECK(with.duration.value == doctest::Approx(without.duration.value / with.goodput));
  CHECK(with.dollars == doctest::Approx(without.dollars / with.goodput));
}

TEST_CASE("without spares the job waits for each repair; spares bring it towards what restarts alone cost") {
  // Erlang's loss formula: B(1, a) = a / (1 + a), B(2, a) = a^2 / (2 + 2 a + a^2).
  const double a = 0.5;
  CHECK(availability({kDay}, {a * kDay}, 0) == doctest::Approx(1 / (1 + a)).epsilon(1e-12));
  CHECK(availability({kDay}, {a * kDay}, 1) == doctest::Approx((2 + 2 * a) / (2 + 2 * a + a * a)).epsilon(1e-12));
  CHECK(availability({kDay}, {0}, 0) == 1);
  TrainingBudget budget;
  budget.failures = {.mtbf = {8 * kDay}, .checkpoint = {60}, .restart = {600}};
  const double always = economics(budget, {{"gpu", 8}}, 0).goodput;
  budget.failures->repair = {a * kDay}, budget.failures->spares = 1;
  const Economics e = economics(budget, {{"gpu", 8}}, 0);
  REQUIRE(e.goodput_of_spares.size() == 3);
  CHECK(e.goodput_of_spares[0] == doctest::Approx(always / (1 + a)).epsilon(1e-12));
  CHECK(e.goodput == e.goodput_of_spares[1]);
  CHECK(e.goodput_of_spares[1] < e.goodput_of_spares[2]);
  CHECK(e.goodput_of_spares[2] < always);
  CHECK(economics_lines(e)[1].note.find("with none") != std::string::npos);
}

TEST_CASE("availability is the share of time in which a job with spares runs, as events say") {
  for (const int spares : {0, 1, 3}) {
    Rng rng(7, std::to_string(spares));
    const auto after = [&](double mean) { return -mean * std::log(1 - rng.uniform()); };
    double now = 0, runs = 0;
    int broken = 0;
    for (int event = 0; event < 200000; ++event) {  // Rates: failures 1 while it runs, repairs 1 / 2 each.
      const bool is_running = broken <= spares;
      const double failure = is_running ? after(1) : kInfinity, repair = broken > 0 ? after(2.0 / broken) : kInfinity;
      const double step = std::min(failure, repair);
      now += step, runs += is_running ? step : 0;
      broken += failure < repair ? 1 : -1;
    }
    CHECK(runs / now == doctest::Approx(availability({1}, {2}, spares)).epsilon(0.01));
  }
}

}  // namespace stagecraft::economics_test
