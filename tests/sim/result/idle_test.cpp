// Causes of idle time: they follow formulas where formulas exist, and always sum to the whole waiting time.

#include "sim/result/idle.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::idle_test {
namespace {

struct Times {
  double forward, backward;
};
// Dyadic, so that sums are exact and equal means equal.
constexpr Times kTimes[] = {{1, 1}, {1, 2}, {0.5, 1.25}, {3, 0.75}};

IdVector<DeviceId, IdleTimes> idle_of(const char* name, const Plan& plan, Times t, int iterations, double delay = 0) {
  const Program program = test::program_of(name, plan, uniform_costs(plan, test::times(t.forward, t.backward, 0)),
                                           test::pure_delays(iterations));
  return idle_times(program, test::run_ideal(program, test::delay_cluster(program.devices, delay)));
}

}  // namespace

// A device is (m + p - 1)(f + b) in an iteration and computes m (f + b) of it; between its first backward and its last
// forward it never waits (1F1B), or does nothing but wait for the first backward in one piece (GPipe).
TEST_CASE("1f1b and gpipe have start-up and drain of (p - 1)(f + b) on every device, in every iteration") {
  for (const char* name : {"gpipe", "1f1b"})
    for (const int p : {1, 2, 4, 8})
      for (const int m : {8, 16, 33})
        for (const int iterations : {1, 3})
          for (const Times t : kTimes)
            for (const IdleTimes& i : idle_of(name, chain_plan(p, p, m), t, iterations)) {
              CAPTURE(name);
              CAPTURE(p);
              CAPTURE(m);
              CAPTURE(iterations);
              CHECK(i.start_up.value + i.drain.value + i.input.value ==
                    iterations * (p - 1) * (t.forward + t.backward));
              CHECK(i.exposed.total().value + i.receiver.value + i.other.value == 0);
              CHECK(i.input.value == 0);
            }
}

// Rank r of p starts p - r forwards, after r forwards of others; its first backward comes after the forwards and
// p - 1 - r backwards of later ranks, at p f + (p - 1 - r) b.
TEST_CASE("1f1b has a start-up of r f + (p - 1 - r) b and a drain of (p - 1 - r) f + r b on rank r") {
  for (const int p : {2, 4, 8})
    for (const Times t : {Times{1, 1}, Times{1, 2}}) {
      const IdVector<DeviceId, IdleTimes> idle = idle_of("1f1b", chain_plan(p, p, 2 * p), t, 1);
      for (int r = 0; r < p; ++r) {
        CAPTURE(p);
        CAPTURE(r);
        CHECK(idle[DeviceId{r}].start_up.value == r * t.forward + (p - 1 - r) * t.backward);
        CHECK(idle[DeviceId{r}].drain.value == (p - 1 - r) * t.forward + r * t.backward);
      }
    }
}

TEST_CASE("one device never waits") {
  for (const IdleTimes& i : idle_of("1f1b", chain_plan(1, 1, 4), {1, 2}, 2)) CHECK(i.total().value == 0);
}

// Two ranks, one micro-batch, messages of d. Rank 1 waits f, then d for what is on the wire, and drains while the
// gradient travels and rank 0 goes back. Rank 0 waits d + f + b until the gradient leaves rank 1, then d.
TEST_CASE("waiting for a message on the wire is exposed, in any phase of the run") {
  const IdVector<DeviceId, IdleTimes> idle = idle_of("gpipe", chain_plan(2, 2, 1), {1, 2}, 1, 0.25);
  CHECK(idle[DeviceId{1}].start_up.value == 1);
  CHECK(idle[DeviceId{1}].exposed.messages.value == 0.25);
  CHECK(idle[DeviceId{1}].drain.value == 0.25 + 2);
  CHECK(idle[DeviceId{0}].start_up.value == 0.25 + 1 + 2);
  CHECK(idle[DeviceId{0}].exposed.messages.value == 0.25);
  CHECK(idle[DeviceId{0}].drain.value == 0);
}

namespace {

struct Run {
  Program program;
  Report report;
};

/// The program and its report; nothing if the program blocks without end.
std::optional<Run> run_of(const test::RandomCase& c) try {
  Program program = test::program_of(c);
  const Cluster cluster = test::star(program.devices, 1e9, 1e-6);
  Report report = measure(program, test::run_ideal(program, cluster), cluster);
  return Run{std::move(program), std::move(report)};
} catch (const Infeasible&) {
  return std::nullopt;
}

}  // namespace

TEST_CASE("work and the causes of idle time sum to the length of the run, and the classes of time to the period") {
  test::Draw draw{Rng(31, "idle")}, draw_ties{Rng(31, "ties")};
  int seen = 0, not_taken = 0;
  for (int trial = 0; trial < 300; ++trial) {
    test::RandomCase c = test::random_case(draw, 5);
    add_ties(c, draw_ties);
    CAPTURE(test::to_text(c));
    const std::optional<Run> run = run_of(c);
    if (!run) continue;
    ++seen;
    const double length = run->report.length.value;
    for (const DeviceReport& d : run->report.devices) {
      const IdleTimes& i = d.idle;
      for (const Seconds part : {i.start_up, i.input, i.drain, i.exposed.total(), i.receiver, i.other})
        CHECK(part.value >= 0);
      CHECK(i.total().value + d.utilisation * length == doctest::Approx(d.used ? length : 0).epsilon(1e-9));
      CHECK(i.other.value <= 1e-9 * length);
      if (d.used) CHECK(d.time.total().value == doctest::Approx(run->report.period.value).epsilon(1e-9));
      if (run->program.iterations == 1) CHECK(d.time.bubble.value == doctest::Approx(i.bubble().value).epsilon(1e-9));
      not_taken += i.receiver.value > 0;
    }
    double sum = 0;
    for (const MainTimeClass& one : main_time_classes()) sum += one.seconds(run->report.time).value;
    CHECK(sum == doctest::Approx(run->report.period.value).epsilon(1e-9));
    CHECK(run->report.bubble * run->report.period.value ==
          doctest::Approx(run->report.time.bubble.value).epsilon(1e-9));
  }
  CHECK(seen > 150);
  CHECK(not_taken > 0);
}

// Two ranks, two micro-batches, one unit for everything, messages of 1/4, each of which blocks its rank. Rank 0 sends
// F0 from 1 to 1.25 and computes F1 until 2.25. Rank 1 computes F0 and B0 until 3.25. Both then send and receive in one
// group until 3.5. Rank 0 computes B0 until 4.5 and waits for B1, which rank 1 computes until 5.5 and sends until 5.75.
TEST_CASE("a device that exchanges messages in one group waits for its input, not for a receiver") {
  const Plan plan = chain_plan(2, 2, 2);
  LoweringOptions options;
  options.overlap = false;
  const Program program = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 1, 0)), options);
  const Timeline timeline = test::run_ideal(program, test::delay_cluster(2, 0.25));
  const IdleTimes first = idle_times(program, timeline)[DeviceId{0}];
  CHECK(first.start_up.value == 3.25 - 2.25);
  CHECK(first.exposed.messages.value == 3 * 0.25);
  CHECK(first.drain.value == 5.5 - 4.5);
  CHECK(first.receiver.value + first.input.value + first.other.value == 0);
  // Rank 1 waits for F0 from 0 to 1, and for the end, which is B1 of rank 0, from 5.75 to 6.75.
  const IdleTimes last = idle_times(program, timeline)[DeviceId{1}];
  CHECK(last.start_up.value == 1);
  CHECK(last.exposed.messages.value == 3 * 0.25);
  CHECK(last.drain.value == 6.75 - 5.75);
  CHECK(last.receiver.value + last.input.value + last.other.value == 0);
}

// Three micro-batches, a forward takes two units on rank 1, all else one, and messages of 1/4 block their ranks. Rank 0
// computes F1 until 2.25 and F2 until 4.5, but rank 1 takes F1 only after F0, at 3.25, and F2 only after F1, at 5.5.
// Nothing comes back meanwhile. Rank 0 then waits from 5.75 for B0, which rank 1 computes after F2, from 7.75 to 8.75.
TEST_CASE("a device that only sends, to one that still computes, waits for a receiver") {
  const Plan plan = chain_plan(2, 2, 3);
  LoweringOptions options;
  options.overlap = false;
  const StageCosts costs{{test::times(1, 1, 0)}, {test::times(2, 1, 0)}};
  const Program program = test::program_of("gpipe", plan, costs, options);
  const IdleTimes first = idle_times(program, test::run_ideal(program, test::delay_cluster(2, 0.25)))[DeviceId{0}];
  CHECK(first.receiver.value == (3.25 - 2.25) + (5.5 - 4.5));
  CHECK(first.start_up.value == 8.75 - 5.75);
  CHECK(first.exposed.messages.value == 6 * 0.25);  // Three messages each way.
  CHECK(first.drain.value + first.input.value + first.other.value == 0);
}

}  // namespace stagecraft::idle_test
