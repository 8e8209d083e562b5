// Messages that wait for memory: the simulators agree, no device holds more than it may, and more buffers never cost
// time.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/held_messages.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::buffers_test {
using test::difference;

namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

LoweringOptions limited(int buffers, int iterations = 1) {
  LoweringOptions options;
  options.buffers = buffers > 0 ? message_buffers(buffers) : MessageBuffers{};
  options.iterations = iterations;
  return options;
}

/// Nothing where messages block.
std::optional<Program> program_unless_blocked(const test::RandomCase& c) {
  try {
    return test::program_of(c);
  } catch (const Infeasible& e) {
    CHECK(e.code() == "deadlock");
    return {};
  }
}

/// Time of `items` forwards of a chain whose stages take `times`, with messages of `message` seconds.
double inference(const std::vector<double>& times, double message, int items, int buffers) {
  const int stages = static_cast<int>(times.size());
  Plan plan = chain_plan(stages, stages, items);
  for (StageEdge& e : plan.edges) e.bytes = Bytes{1e6 * message};
  StageCosts costs;
  for (const double time : times) costs.add({test::times(time, 0)});
  const Program program = test::program_of("inference", plan, costs, limited(buffers));
  return run("ideal", program, test::star(stages, 1e6, 0)).last_end().value;
}

}  // namespace

TEST_CASE("schedules have the same starts and ends on all simulators with 1, 2 and 3 buffers, and hold no more") {
  int compared = 0, deadlocked = 0;
  for (const ScheduleDef* def : schedules::catalog())
    for (const int buffers : {1, 2, 3}) {
      constexpr int kRanks = 4, kMicroBatches = 8;
      if (def->name == "csv" || !test::takes(*def, kRanks, kMicroBatches)) continue;
      CAPTURE(def->name);
      CAPTURE(buffers);
      Plan plan = test::least_plan(*def, kRanks, kMicroBatches);
      for (StageEdge& e : plan.edges) e.bytes = Bytes{3e5};
      const StageCosts costs = uniform_costs(plan, test::times(1, 2, 0.5));
      const Cluster cluster = test::star(kRanks, 1e6, 0.05, Duplex::Unshared);
      Program program;
      try {
        program = test::program_of(def->name, plan, costs, limited(buffers, 2));
      } catch (const Infeasible& e) {
        CHECK(e.code() == "deadlock");
        CHECK_MESSAGE(std::string(e.what()).find("frees a buffer") != std::string::npos, e.what());
        ++deadlocked;
        continue;
      }
      const Timeline ideal = run("ideal", program, cluster);
      for (const char* other : {"fluid", "simgrid"})
        CHECK(difference(program, ideal, run(other, program, cluster)) == "");
      const test::HeldMessages most_held = test::held_messages(program, ideal);
      CHECK(most_held.received <= buffers);
      CHECK(most_held.outgoing <= std::max(buffers, 2));
      ++compared;
    }
  CHECK(compared > 60);
  MESSAGE(compared << " programs compared, " << deadlocked << " deadlocked");
}

TEST_CASE("random plans hold no more than they may, on every simulator, and more buffers never cost time") {
  test::Draw draw{Rng(45, "buffers")};
  int compared = 0, deadlocked = 0, limits = 0, replicated = 0;
  for (int trial = 0; compared < test::trials(400, 80); ++trial) {
    REQUIRE(trial < 4000);
    test::RandomCase c = test::random_case(draw, 6);
    c.options.rendezvous = true;
    if (!program_unless_blocked(c)) continue;  // It blocks without a limit.
    const int buffers = draw(1, 3);
    c.options.buffers = message_buffers(buffers);
    CAPTURE(to_text(c));
    CAPTURE(buffers);
    const std::optional<Program> program = program_unless_blocked(c);
    if (!program) {
      ++deadlocked;
      continue;
    }
    Cluster cluster = test::bare_cluster(program->devices, 1);
    for (int d = 0; d < program->devices; ++d)
      test::connect(cluster, {d, program->devices}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300), Duplex::Unshared);
    const Timeline ideal = run("ideal", *program, cluster);
    for (const char* backend : {"fluid", "simgrid"}) {
      const Timeline other = run(backend, *program, cluster);
      CHECK(difference(*program, ideal, other) == "");
      const test::HeldMessages most_held = test::held_messages(*program, other);
      CHECK(most_held.received <= buffers);
      CHECK(most_held.outgoing <= std::max(buffers, 2));
    }
    c.options.buffers = message_buffers(buffers + 1);
    const double more = run("ideal", *program_unless_blocked(c), cluster).last_end().value;
    c.options.buffers = {};
    const Program unlimited = *program_unless_blocked(c);
    const Timeline without = run("ideal", unlimited, cluster);
    CHECK(ideal.last_end().value >= more - 1e-12);
    CHECK(more >= without.last_end().value - 1e-12);
    limits += test::held_messages(unlimited, without).received > buffers;
    replicated +=
        std::any_of(c.plan.stages.begin(), c.plan.stages.end(), [](const Stage& s) { return s.replicas() > 1; });
    ++compared;
  }
  CHECK(limits > compared / 10);
  CHECK(replicated > compared / 10);
  MESSAGE(compared << " programs compared, " << deadlocked << " deadlocked, " << limits
                   << " most_held more without a limit");
}

TEST_CASE("with one buffer a stage does not receive while it computes; with two it does") {
  // One buffer is taken from the start of a transfer to the end of the op, so the period is that of both together.
  const auto near = [](double seconds) { return doctest::Approx(seconds).epsilon(1e-12); };
  for (const int items : {4, 9}) {
    CHECK(inference({1, 3}, 0.5, items, 1) == near(1 + items * (0.5 + 3)));
    CHECK(inference({1, 3}, 0.5, items, 2) == near(1 + 0.5 + items * 3));
    CHECK(inference({1, 3}, 0.5, items, 0) == near(1 + 0.5 + items * 3));
    CHECK(inference({3, 1}, 0.5, items, 1) == near(items * 3 + 0.5 + 1));  // Messages leave next to computation.
    CHECK(inference({1, 1}, 2, items, 1) == near(1 + items * (2 + 1)));
    CHECK(inference({1, 1}, 2, items, 2) == near(1 + items * 2 + 1));
    CHECK(inference({1, 1, 4}, 0.5, items, 1) == near(1 + 0.5 + 1 + items * (0.5 + 4)));
  }
}

TEST_CASE("a sender stops computing when its messages do not leave") {
  Plan plan = chain_plan(2, 2, 6);
  plan.edges.front().bytes = Bytes{1};
  StageCosts costs;
  costs.add({test::times(1, 0)});
  costs.add({test::times(10, 0)});
  const Cluster cluster = test::star(2, 1e9, 0);
  const auto start = [&](int buffers, const char* op) {
    const Program program = test::program_of("inference", plan, costs, limited(buffers));
    return run("ideal", program, cluster).start[test::find(program, op)];
  };
  // Stage 1 ends its n-th op at 11, 21, 31, ...
  const auto near = [](double seconds) { return doctest::Approx(seconds).epsilon(1e-6); };
  CHECK(start(0, "0F5") == near(5));
  CHECK(start(1, "0F2") == near(2));   // 0F0 has left at once.
  CHECK(start(1, "0F3") == near(11));  // 0F1 leaves after 1F0.
  CHECK(start(1, "0F5") == near(31));
  CHECK(start(2, "0F4") == near(11));
  CHECK(start(3, "0F5") == near(5));
}

}  // namespace stagecraft::buffers_test
