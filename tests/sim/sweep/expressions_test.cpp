// Computed values and conditions of sweeps.

#include "sim/sweep/sweep.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include <fmt/core.h>

#include "sim/result/metrics.hpp"
#include "sim/sweep/points.hpp"
#include "sim/sweep/seed_statistics.hpp"
#include "tests/sim/sweep/files.hpp"

namespace stagecraft::expressions_test {
namespace {

using Labels = std::vector<std::string>;

Labels labels_of(const std::string& rest) { return test::labels(test::points_of(rest)); }

std::string refusal(const std::string& rest) {
  try {
    test::points_of(rest);
  } catch (const InputError& e) {
    const Diagnostic& d = e.problems().front();
    return fmt::format("{}:{} {}: {}", d.where.line, d.where.column, d.path, d.message);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a value is computed from settings before and after it, and from the scenario") {
  CHECK(labels_of("axes:\n  plan.replicas: = 8 / plan.stages\n  plan.stages: [2, 4]\n") ==
        Labels{"replicas=4,stages=2", "replicas=2,stages=4"});
  // The quickstart scenario has 8 micro-batches.
  CHECK(labels_of("axes: {plan.stages: [= run.micro_batches / 2, = run.micro_batches]}\n") ==
        Labels{"stages=4", "stages=8"});
  CHECK(labels_of("also:\n  - {plan.stages: 2, plan.replicas: = plan.stages * 2, run.seed: = plan.replicas + 1}\n") ==
        Labels{"stages=2,replicas=4,seed=5"});
}

TEST_CASE("one value is a list of one, and a text in quotes is no expression") {
  CHECK(labels_of("axes: {run.micro_batches: 4, run.seed: [1, 2]}\n") ==
        Labels{"micro_batches=4,seed=1", "micro_batches=4,seed=2"});
  CHECK(labels_of("axes: {title: [\"= 2\"]}\n") == Labels{"title== 2"});
}

TEST_CASE("points of the axes meet every condition; a map stands for its name") {
  const std::string axes =
      "axes:\n  run.schedule: [gpipe, {name: interleaved, chunks: 2}]\n  run.micro_batches: [4, 8]\n";
  CHECK(labels_of(axes + "where: run.schedule == 'interleaved' or run.micro_batches > 4\n") ==
        Labels{"schedule=gpipe,micro_batches=8", "schedule={name: interleaved, chunks: 2},micro_batches=4,stages=8",
               "schedule={name: interleaved, chunks: 2},micro_batches=8,stages=8"});
  CHECK(labels_of(axes + "where: [run.schedule != 'gpipe', run.micro_batches / run.schedule.chunks == 4]\n") ==
        Labels{"schedule={name: interleaved, chunks: 2},micro_batches=8,stages=8"});
  CHECK(labels_of(axes +
                  "where: run.micro_batches == 4 and run.schedule == 'gpipe'\nalso: [{run.micro_batches: 64}]\n") ==
        Labels{"schedule=gpipe,micro_batches=4", "micro_batches=64"});
}

TEST_CASE("a problem of an expression has its place in the file") {
  CHECK(refusal("axes:\n  plan.stages: [2, = 2 * (3]\n") == "5:26 plan.stages: this parenthesis is not closed");
  CHECK(refusal("axes: {plan.stages: 2, plan.replicas: = 4 / plan.stagse}\n") ==
        "4:45 plan.replicas: neither the sweep nor its scenario sets 'plan.stagse'");
  CHECK(refusal("axes: {plan.stages: = plan.replicas, plan.replicas: = plan.stages}\n") ==
        "4:55 plan.replicas: 'plan.stages' depends on itself");
  CHECK(refusal("axes: {plan.stages: [2, 4]}\nwhere: plan.stages\n") ==
        "5:8 where: the condition is '2', neither true nor false");
  CHECK(refusal("axes: {plan.stages: [2, 4]}\nwhere: plan.stages > 4\n") == "1:1 where: no point is left");
  CHECK(refusal("axes: {plan.stages: [2, 4]}\nwhere: {a: 1}\n") == "5:8 where: a condition is a text");
}

TEST_CASE("statistics of 1, 2, 3, 6: mean 3, squares 4 + 1 + 0 + 9 over 3") {
  const ValueSpread s = spread_of({1, 2, 3, 6});
  CHECK(s.count == 4);
  CHECK(s.mean == doctest::Approx(3));
  CHECK(s.min == 1);
  CHECK(s.max == 6);
  CHECK(s.standard_deviation == doctest::Approx(std::sqrt(14.0 / 3)));
  CHECK(spread_of({0.1, 0.1, 0.1}).standard_deviation == 0);
}

TEST_CASE("points that differ in their seeds only are one group") {
  SweepTable table;
  const auto add = [&](const char* settings, const char* status) {
    SweepRow& row = table.rows.emplace_back();
    row.number = static_cast<int>(table.rows.size());
    row.settings = settings;
    row.status = status;
    row.figures.assign(metrics().size(), std::nan(""));
    row.figures[metric("period_s")] = static_cast<double>(table.rows.size());
  };
  add(R"({"run.schedule": "gpipe", "run.seed": 1})", "ok");
  add(R"({"run.schedule": "gpipe", "run.seed": 2})", "ok");
  add(R"({"run.schedule": "1f1b", "run.seed": 1})", "ok");
  add(R"({"run.schedule": "1f1b", "run.seed": 2})", "crash");
  const std::vector<SeedGroup> groups = seed_groups(table);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].label == "schedule=gpipe");
  CHECK(groups[0].rows.size() == 2);
  CHECK(Json(seed_statistics_json(table)).dump() ==
        R"([{"label":"schedule=gpipe","points":[1,2],"metrics":{"period_s":{"count":2,"mean":1.5,"min":1.0,"max":2.0,)"
        R"("standard_deviation":0.7071067811865476}}}])");
}

}  // namespace stagecraft::expressions_test
