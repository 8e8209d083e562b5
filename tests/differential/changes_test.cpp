// The cost of a straggler, a pause, a failure or a slow link, computed by hand, on every simulator.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "sim/result/report.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::changes_test {
using test::ProgramBuilder;

namespace {

constexpr double kBandwidth = 1e9;

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

Change device(int d, double from, double until, double rate) {
  Change change;
  change.devices = {DeviceId{d}};
  change.from = Seconds{from}, change.until = Seconds{until};
  change.rate = rate;
  return change;
}

Change down(Change change) {
  change.down = true;
  return change;
}

Change link(int l, double from, double until, double rate) {
  Change change = device(0, from, until, rate);
  change.devices.clear();
  change.links = {LinkId{l}};
  return change;
}

Program pipeline(int stages, int micro_batches, int iterations, const StageCosts& costs) {
  Plan plan = chain_plan(stages, stages, micro_batches);
  LoweringOptions options;
  options.iterations = iterations;
  return test::program_of("1f1b", plan, costs, options);
}

constexpr const char* kSimulators[] = {"ideal", "fluid", "simgrid"};

}  // namespace

TEST_CASE("a straggler of half the speed is a device whose ops take twice as long") {
  const int stages = 4;
  test::Draw draw{Rng(50, "straggler")};
  StageCosts costs, slow;
  for (int s = 0; s < stages; ++s) costs.add({test::random_cost(draw)});
  slow = costs;
  StageCost& c = slow.at(StageId{2}, 0);
  for (Seconds* t : {&c.forward, &c.backward, &c.input_gradient, &c.weight_gradient, &c.recompute, &c.update, &c.touch})
    *t = *t * 2;
  Cluster cluster = test::star(stages, kBandwidth, 1e-6);
  const Program program = pipeline(stages, 6, 2, costs), twice = pipeline(stages, 6, 2, slow);
  for (const char* backend : kSimulators) {
    cluster.changes.clear();
    const Timeline expected = run(backend, twice, cluster);
    cluster.changes = {device(2, 0, kForEver, 0.5)};
    CHECK(test::difference(program, run(backend, program, cluster), expected) == "");
  }
}

TEST_CASE("one straggler of factor s makes the period of 1F1B about s times as long") {
  // Equal stages of 1 ms forward and 2 ms backward, free messages and updates. With k stages after the straggler it
  // does its first forward, waits for the 3 ms of each of them (its k other forwards of the warm-up fit into that),
  // then turns from backward to forward m - 1 - k times, waits for them once more after the last forward, and does the
  // last backward: (m - k) 3 s + 6 k ms. The p - 1 - k stages before it add 3 ms each.
  const int stages = 4, m = 64;
  const double s = 1.25;
  StageCost cost;
  cost.forward = Seconds{1e-3}, cost.backward = Seconds{2e-3};
  cost.input_gradient = cost.weight_gradient = Seconds{1e-3};
  const StageCosts costs = uniform_costs(chain_plan(stages, stages, m), cost);
  const Program program = pipeline(stages, m, 3, costs);
  for (int straggler = 0; straggler < stages; ++straggler) {
    Cluster cluster = test::star(stages, 1e30, 0);
    CHECK(measure(program, run("ideal", program, cluster), cluster).period.value == near((m + stages - 1) * 3e-3));
    cluster.changes = {device(straggler, 0, kForEver, 1 / s)};
    const int k = stages - 1 - straggler;
    for (const char* backend : kSimulators)
      CHECK(measure(program, run(backend, program, cluster), cluster).period.value ==
            near(((m - k) * 3 * s + 6 * k + (stages - 1 - k) * 3) * 1e-3));
  }
}

TEST_CASE("a pause lengthens an op; a failure costs the work done and the time until the device is back") {
  ProgramBuilder builder(2);
  const auto op = builder.compute(0, 4);
  builder.compute(1, 1, {builder.send(0, 1, 1'000'000'000, {op}).receive});
  const Program program = builder.build();
  Cluster cluster = test::star(2, kBandwidth, 0);
  for (const char* backend : kSimulators) {
    cluster.changes = {device(0, 1, 3.5, 0)};
    CHECK(run(backend, program, cluster).end[InstructionId{0}] == near(6.5));
    CHECK(run(backend, program, cluster).last_end().value == near(8.5));
    cluster.changes = {down(device(0, 1, 3.5, 1))};
    CHECK(run(backend, program, cluster).end[InstructionId{0}] == near(7.5));  // 1 s is lost
    cluster.changes = {down(device(1, 0, 7, 1))};
    CHECK(run(backend, program, cluster).start[InstructionId{3}] == near(7));  // the message has come at 5
    CHECK(run(backend, program, cluster).last_end().value == near(8));
  }
}

TEST_CASE("half the bandwidth doubles the rest of a message, and a link that is down delays it") {
  for (const bool rendezvous : {true, false}) {
    ProgramBuilder builder(2, rendezvous);
    builder.send(0, 1, 4'000'000'000);
    builder.send(0, 1, 0);
    const Program program = builder.build();
    for (const Duplex duplex : {Duplex::Full, Duplex::Half, Duplex::Unshared}) {
      Cluster cluster = test::star(2, kBandwidth, 0.25, duplex);
      const auto end = [&](const char* backend, std::vector<Change> changes) {
        cluster.changes = std::move(changes);
        return run(backend, program, cluster).end[InstructionId{0}];
      };
      for (const char* backend : kSimulators) {
        CHECK(end(backend, {}) == near(4.5));
        CHECK(end(backend, {link(1, 0, kForEver, 0.5)}) == near(8.5));
        CHECK(end(backend, {link(0, 1.5, kForEver, 0.5)}) == near(7.5));
        CHECK(end(backend, {link(0, 0, 1.5, 0.5)}) == near(5));  // faster again on the way
        CHECK(end(backend, {down(link(1, 2.5, 12.5, 1))}) == near(14.5));
        CHECK(end(backend, {down(link(1, 0, 2, 1)), link(0, 2, 4, 0)}) == near(8));
        CHECK(run(backend, program, cluster).end[InstructionId{2}] == near(8.5));  // the next, without bytes
        Change late = link(0, 0, 1, 1);
        late.latency = 3;
        CHECK(end(backend, {late}) == near(5));
      }
    }
  }
}

TEST_CASE("bandwidth that a slow link leaves goes to the others until it recovers") {
  // Two messages of 3 GB into one card of 1 GB/s: 0.5 GB/s each. From 2 s to 4 s one sender has 0.1 GB/s, the other
  // 0.9. Then 1 - 0.1 * 2 - 1 = 1.8 GB and 3 - 1 - 1.8 = 0.2 GB are left: 0.4 s together, 1.6 GB alone.
  ProgramBuilder builder(3);
  builder.send(0, 2, 3'000'000'000);
  builder.send(1, 2, 3'000'000'000);
  const Program program = builder.build();
  Cluster cluster = test::star(3, kBandwidth, 0);
  cluster.changes = {link(0, 2, 4, 0.1)};
  for (const char* backend : {"fluid", "simgrid"}) {
    const Timeline t = run(backend, program, cluster);
    CHECK(t.end[InstructionId{2}] == near(4.4));
    CHECK(t.end[InstructionId{0}] == near(6));
  }
}

TEST_CASE("a ring runs at the present speed of its slowest edge") {
  ProgramBuilder builder(2);
  builder.all_reduce({0, 1}, 4'000'000'000);
  builder.all_reduce({0, 1}, 0);
  const Program program = builder.build();
  Cluster cluster = test::star(2, kBandwidth, 0.25);
  cluster.changes = {link(0, 3, 5, 0.5)};  // 2 latencies of 0.5, 2 GB by 3 s, 1 GB by 5 s, and 1 GB
  for (const char* backend : kSimulators) CHECK(run(backend, program, cluster).end[InstructionId{0}] == near(6));
  cluster.changes = {down(link(1, 6, 9, 1))};
  for (const char* backend : kSimulators) CHECK(run(backend, program, cluster).end[InstructionId{2}] == near(9));
}

TEST_CASE(
    "a device or link that stays down ends the run with its name, the time and the number of stuck instructions") {
  ProgramBuilder builder(2);
  const auto op = builder.compute(0, 4);
  builder.compute(1, 1, {builder.send(0, 1, 1'000'000'000, {op}).receive});
  const Program program = builder.build();
  Cluster cluster = test::star(2, kBandwidth, 0);
  const auto message = [&](const char* backend, Change change) {
    cluster.changes = {std::move(change)};
    try {
      run(backend, program, cluster);
    } catch (const Infeasible& e) {
      CHECK(e.code() == "down");
      return std::string(e.what()).substr(0, std::string(e.what()).find('\n'));
    }
    return std::string("it ran");
  };
  for (const char* backend : kSimulators) {
    CHECK(message(backend, down(device(0, 1, kForEver, 1))) ==
          "'d0' stands still from 1 s on and is never back: 4 of 4 instructions cannot run, the first of them 0F0");
    CHECK(message(backend, device(1, 5, kForEver, 0)) ==
          "'d1' stands still from 5 s on and is never back: 1 of 4 instructions cannot run, the first of them 1F0");
    CHECK(
        message(backend, down(link(1, 4.5, kForEver, 1))) ==
        "'l1' stands still from 4.5 s on and is never back: 3 of 4 instructions cannot run, the first of them 0>1:0F0");
    Change often = down(device(0, 0, kForEver, 1));
    often.every = Seconds{4}, often.lasts = Seconds{1};
    CHECK(message(backend, often) ==
          "'d0' is never up for long enough: 4 of 4 instructions cannot run, the first of them 0F0");
    CHECK(message(backend, down(device(0, 20, kForEver, 1))) == "it ran");
  }
}

TEST_CASE("links that change repeatedly do not end a run") {
  ProgramBuilder builder(2);
  builder.send(0, 1, 4'000'000'000);
  builder.compute(0, 100);
  const Program program = builder.build();
  Cluster cluster = test::star(2, kBandwidth, 0);
  Change change = link(0, 1, kForEver, 0.5);
  change.every = Seconds{2}, change.lasts = Seconds{1};  // 1..2, 3..4, 5..6
  cluster.changes = {change};
  for (const char* backend : kSimulators) {
    CHECK(run(backend, program, cluster).end[InstructionId{0}] == near(5.0));  // 1 + 0.5 + 1 + 0.5 + 1
    CHECK(run(backend, program, cluster).last_end().value == near(100));
  }
}

}  // namespace stagecraft::changes_test
