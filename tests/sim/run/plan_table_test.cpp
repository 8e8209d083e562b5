// Planners side by side on one scenario.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/plan/planner.hpp"
#include "sim/run/plan_table.hpp"
#include "sim/run/run.hpp"

using namespace stagecraft;

namespace {

const std::string kFile = "scenarios/examples/quickstart.yaml";

PlanTable compare(const std::string& planners, std::vector<std::string> sets = {}) {
  return compare_plans({.file = kFile, .sets = std::move(sets), .planners = planners, .show = true},
                       [](const std::string&) {});
}

const PlanRow& row(const PlanTable& table, const std::string& planner) {
  const auto found =
      std::find_if(table.rows.begin(), table.rows.end(), [&](const PlanRow& r) { return r.planner == planner; });
  REQUIRE(found != table.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("the row of the scenario's own planner is its run") {
  const PlanTable table = compare("balanced");
  const Scenario scenario = load_scenario(kFile, {"run.iterations=5"});
  const Prepared p = prepare(scenario);
  const Outcome o = run(scenario, p, "ideal");
  const PlanRow& r = row(table, "balanced");
  CHECK(r.ran());
  CHECK(r.period == o.report.period);
  CHECK(r.makespan == o.report.makespan);
  CHECK(r.each.value == doctest::Approx(o.report.period.value / 8).epsilon(1e-12));
  CHECK(r.stages == 4);
  CHECK(r.devices == 4);
  CHECK(r.plan == to_text(p.plan));
}

TEST_CASE("every planner that searches is a row; one without a plan ends nothing") {
  const PlanTable table = compare("all", {"run.micro_batches=2"});
  std::size_t searching = 0;
  for (const PlannerDef* def : planners::all()) searching += def->name != "explicit";
  CHECK(table.rows.size() == searching);
  const PlanTable impossible = compare("all", {"plan.stages=1000"});
  CHECK(!row(impossible, "balanced").ran());
  CHECK(row(impossible, "balanced").why_not.find('\n') == std::string::npos);
  CHECK(row(impossible, "layerpipe").ran());
}

TEST_CASE("what ran comes first, the shortest period before the others") {
  const PlanTable table = compare("all");
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    const PlanRow &a = table.rows[i - 1], &b = table.rows[i];
    if (!a.ran()) CHECK(!b.ran());
    if (a.ran() && b.ran()) CHECK(a.period <= b.period);
  }
}

TEST_CASE("no prediction is below its bound") {
  for (const PlanRow& r : compare("all").rows)
    if (r.ran() && r.lower_bound.value > 0) CHECK(r.lower_bound.value <= r.predicted.value * (1 + 1e-9));
}

TEST_CASE("no plan is simulated to beat what none can") {
  int bounded = 0;
  for (const std::string file :
       {"quickstart", "graph-pipeline", "edge-inference", "pipedream-replicas", "gpt-2bw-8x2"}) {
    CAPTURE(file);
    for (const std::string backend : {"ideal", "fluid"}) {
      const PlanTable table = compare_plans({.file = "scenarios/examples/" + file + ".yaml",
                                             .sets = {},
                                             .planners = "balanced,spp,pipedream,piper,2bw,graphpipe,layerpipe",
                                             .backend = backend},
                                            [](const std::string&) {});
      for (const PlanRow& r : table.rows) {
        if (!r.ran()) continue;
        CAPTURE(r.planner);
        CHECK(r.least.value > 0);
        CHECK(r.least.value <= r.each.value * (1 + 1e-9));
        ++bounded;
      }
    }
  }
  CHECK(bounded > 50);
}

TEST_CASE("unknown planners, and backends that do not simulate") {
  CHECK_THROWS_AS(compare("balancd"), InputError);
  CHECK_THROWS_AS(compare_plans({.file = kFile, .sets = {}, .backend = "cpu"}, [](const std::string&) {}), InputError);
}
