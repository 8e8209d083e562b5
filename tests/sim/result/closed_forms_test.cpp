// Formulas of the papers, with free communication.

#include <doctest/doctest.h>

#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::closed_forms_test {
namespace {

struct Times {
  double forward, backward;
};
// Dyadic, so that sums are exact and equal means equal.
constexpr Times kTimes[] = {{1, 1}, {1, 2}, {0.5, 1.25}, {3, 0.75}};

Report report_of(const char* name, const Plan& plan, Times t, int iterations = 1, double update = 0) {
  const Program program = test::program_of(name, plan, uniform_costs(plan, test::times(t.forward, t.backward, update)),
                                           test::pure_delays(iterations));
  const Cluster cluster = test::delay_cluster(program.devices, 0);
  return measure(program, test::run_ideal(program, cluster), cluster);
}

/// The largest number of activations that a stage keeps alive, as stashes of one byte.
int activations(const Report& report, int stage) { return report.devices[DeviceId{stage}].memory.activations; }

}  // namespace

TEST_CASE("gpipe and 1f1b take (m + p - 1)(F + B), with a bubble of (p - 1) / (m + p - 1)") {
  for (const char* name : {"gpipe", "1f1b"})
    for (const int p : {1, 2, 4, 8, 16})
      for (const int m : {1, 2, 5, 16, 33})
        for (const Times t : kTimes) {
          CAPTURE(name);
          CAPTURE(p);
          CAPTURE(m);
          const Report r = report_of(name, chain_plan(p, p, m), t);
          CHECK(r.makespan.value == (m + p - 1) * (t.forward + t.backward));
          CHECK(r.bubble == doctest::Approx((p - 1.0) / (m + p - 1)).epsilon(1e-12));
        }
}

TEST_CASE("gpipe has m activations alive on every stage, 1f1b min(p - r, m) on rank r") {
  for (const int p : {1, 2, 4, 8, 16})
    for (const int m : {1, 3, 8, 20}) {
      const Report gpipe = report_of("gpipe", chain_plan(p, p, m), {1, 2});
      const Report one = report_of("1f1b", chain_plan(p, p, m), {1, 2});
      const Report graph = report_of("graph", chain_plan(p, p, m), {1, 2});
      for (int r = 0; r < p; ++r) {
        CHECK(activations(gpipe, r) == m);
        CHECK(activations(one, r) == std::min(p - r, m));
        CHECK(activations(graph, r) == std::min(p - r, m));
      }
    }
}

TEST_CASE("a flush costs the bubble in every iteration") {
  for (const char* name : {"gpipe", "1f1b"})
    for (const int p : {2, 4, 8}) {
      const Report r = report_of(name, chain_plan(p, p, 12), {1, 2}, 4, 0.5);
      CHECK(r.makespan.value == (12 + p - 1) * 3 + 0.5);
      // Rank 0 updates last and starts the next iteration right then.
      CHECK(r.period.value == (12 + p - 1) * 3 + 0.5);
    }
}

TEST_CASE("2bw has no bubble, and a period of m(F + B) from m = p - 1 on") {
  for (const int p : {1, 2, 4, 8, 16})
    for (const int m : {std::max(1, p - 1), p, p + 3, 2 * p})
      for (const Times t : kTimes) {
        CAPTURE(p);
        CAPTURE(m);
        const Report r = report_of("2bw", chain_plan(p, p, m), t, 4);
        CHECK(r.period.value == m * (t.forward + t.backward));
        CHECK(r.steady_bubble == doctest::Approx(0).epsilon(1e-12));
        for (int rank = 0; rank < p; ++rank) CHECK(activations(r, rank) == std::min(p - rank, 4 * m));
      }
}

TEST_CASE("2bw on unequal stages has the slowest stage's work as its period") {
  const Plan plan = chain_plan(4, 4, 6);
  for (int slow = 0; slow < 4; ++slow) {
    CAPTURE(slow);
    StageCosts costs = uniform_costs(plan, test::times(0.5, 1));
    costs.at(StageId{slow}, 0) = test::times(2, 3);
    const Program program = test::program_of("2bw", plan, costs, test::pure_delays(6));
    const Cluster cluster = test::delay_cluster(program.devices, 0);
    CHECK(measure(program, test::run_ideal(program, cluster), cluster).period.value == 6 * 5);
  }
}

TEST_CASE("2bw uses at most two versions, and never reads the older one after its last backward") {
  for (const int p : {2, 4, 7})
    for (const int m : {p - 1, p, 2 * p}) {
      const Plan plan = chain_plan(p, p, m);
      const Program program =
          test::program_of("2bw", plan, uniform_costs(plan, test::times(1, 1)), test::pure_delays(5));
      std::vector<int> newest(static_cast<std::size_t>(p), 0);
      for (const Instruction& i : program.instructions) {
        if (!i.is_compute()) continue;
        int& version = newest[i.stage.value];
        if (i.kind == InstructionKind::Update) {
          CHECK(i.version() == version + 1);
          version = i.version();
        } else {
          CHECK(i.version() <= version);
          CHECK(i.version() >= version - 1);
        }
      }
    }
}

TEST_CASE("inference takes (m + p - 1) F, and m F from one iteration to the next") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {1, 4, 9}) {
      const Report r = report_of("inference", chain_plan(p, p, m), {2, 7}, 3);
      CHECK(r.makespan.value == (m + p - 1) * 2);
      CHECK(r.period.value == m * 2);
    }
}

TEST_CASE("with a delay on every hop, gpipe pays it once each way, 1f1b once or more, graph can hide it") {
  const double delay = 0.25;
  for (const int p : {2, 4, 8}) {
    const int m = 4 * p;
    const Plan plan = chain_plan(p, p, m);
    const StageCosts costs = uniform_costs(plan, test::times(1, 2));
    const Cluster cluster = test::delay_cluster(p, delay);
    const auto length = [&](const Program& program) { return test::run_ideal(program, cluster).last_end().value; };
    const double ideal = 3.0 * (m + p - 1), gpipe = length(test::program_of("gpipe", plan, costs, test::pure_delays()));
    CHECK(gpipe == doctest::Approx(ideal + 2 * (p - 1) * delay).epsilon(1e-12));
    CHECK(length(test::program_of("1f1b", plan, costs, test::pure_delays())) > gpipe);
    // One more micro-batch in flight for each hop, and the round trip is covered.
    const Schedule ahead =
        complete(by_stage(plan, "ahead", DeviceSharing::Refused,
                          [&](StageId s, OpList& ops) { alternate(m, 2 * (p - s.value) - 1, 1, ops); }),
                 plan, 1);
    CHECK(length(test::lowered(ahead, plan, costs, test::pure_delays())) == doctest::Approx(gpipe).epsilon(1e-12));
  }
}

TEST_CASE("recomputation adds a forward to each backward, hidden in the bubble if it needs only the input") {
  Plan plan = chain_plan(4, 4, 8);
  for (Stage& stage : plan.stages) stage.shape.recomputation = Recomputation::Full;
  const Report r = report_of("1f1b", plan, {1, 2});
  CHECK(r.makespan.value > (8 + 3) * 3);
  CHECK(r.makespan.value <= (8 + 3) * 4);
  for (const DeviceReport& d : r.devices) {
    CHECK(d.busy.value == 8 * 4);
    CHECK(d.memory.activations == 1);
  }
}

}  // namespace stagecraft::closed_forms_test
