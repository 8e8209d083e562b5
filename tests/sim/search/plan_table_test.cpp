// Planners compared on one scenario.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/experiment/run.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/result/metrics.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/search/plan_table.hpp"
#include "sim/search/schedule_table.hpp"

namespace stagecraft::plan_table_test {
namespace {

const std::string kFile = "scenarios/examples/quickstart.yaml";
/// Alternating devices of two types, with free messages.
const std::string kMixed =
    "cluster={generator: explicit, switches: [s], devices: [{name: a0, type: a}, {name: b0, type: b}, "
    "{name: a1, type: a}, {name: b1, type: b}], types: {a: {peak: 1 TFLOP/s, memory: 800 GiB, memory_bandwidth: "
    "1000 TB/s}, b: {peak: 3 TFLOP/s, memory: 800 GiB, memory_bandwidth: 1000 TB/s}}, links: ["
    "{name: k0, between: [a0, s], bandwidth: 1000000 TB/s, latency: 0 s}, "
    "{name: k1, between: [b0, s], bandwidth: 1000000 TB/s, latency: 0 s}, "
    "{name: k2, between: [a1, s], bandwidth: 1000000 TB/s, latency: 0 s}, "
    "{name: k3, between: [b1, s], bandwidth: 1000000 TB/s, latency: 0 s}]}";

/// A chain of layers with this much work; nothing else takes time.
std::string listed_chain(const std::vector<std::array<int, 3>>& gflop) {
  std::string text = "model={builder: listed, layers: [";
  for (std::size_t l = 0; l < gflop.size(); ++l)
    text += fmt::format(
        "{}{{name: l{}, inputs: [{}], forward: {} GFLOP, input_gradient: {} GFLOP, weight_gradient: {} GFLOP, "
        "parameters: 0, output: 1 B, stash: 0 B}}",
        l > 0 ? ", " : "", l, l > 0 ? fmt::format("l{}", l - 1) : "", gflop[l][0], gflop[l][1], gflop[l][2]);
  return text + "]}";
}

PlanTable compare(const std::string& planners, std::vector<std::string> sets = {}) {
  return compare_plans(load_experiment(kFile, std::move(sets)), {.planners = planners, .show = true});
}

const PlanRow& row(const PlanTable& table, const std::string& planner) {
  const auto it =
      std::find_if(table.rows.begin(), table.rows.end(), [&](const PlanRow& r) { return r.planner == planner; });
  REQUIRE(it != table.rows.end());
  return *it;
}

}  // namespace

TEST_CASE("the reason of a row is the message without its detail, also with a colon in the name of a device") {
  const std::string device =
      R"({generator: explicit, types: {t: {peak: 1 TFLOP/s, memory: 1 MiB, memory_bandwidth: 1 TB/s}}, )"
      R"(devices: [{name: "node a: gpu 0", type: t}]})";
  const Experiment e = load_experiment(
      kFile, {"software=none", "model={builder: uniform, layers: 1, forward: 1 ms, backward: 2 ms, stash: 4 MiB}",
              "cluster=" + device, "plan={planner: balanced, stages: 1}", "run={schedule: 1f1b, micro_batches: 1}"});
  const std::string reason = "node a: gpu 0 (stage 0, l0) needs 4 MiB at 0F0, but has 1 MiB (3 MiB too much)";
  const PlanTable plans = compare_plans(e, {.planners = "balanced"});
  CHECK(plans.rows.front().why_not == reason);
  const ScheduleTable schedules = compare_schedules(e, {.schedules = "1f1b"});
  CHECK(schedules.rows.front().why_not == reason);
  try {
    compile(e);
    FAIL("it fits");
  } catch (const Infeasible& problem) {
    CHECK(problem.problem().message == reason);
    CHECK(problem.problem().detail.find("4 MiB") != std::string::npos);
    CHECK(std::string(problem.what()).find(reason + ": " + problem.problem().detail) == 0);
  }
}

TEST_CASE("the numbers of a plan are the metrics of its run that have their names, with a budget, too") {
  const std::vector<std::string> sets{
      "report={price: 2, tokens: 1e10, failures: {mtbf: 1000 h, checkpoint: 1 min, restart: 5 min}}",
      "run.iterations=5"};
  const nlohmann::json row = nlohmann::json::parse(plans_json(compare("balanced", sets)))["plans"][0];
  const CompiledExperiment c = compile(load_experiment(kFile, sets));
  const Outcome outcome = run(c, "ideal");
  std::set<std::string> compared;
  for (const Metric& m : metrics()) {
    if (!row.contains(m.name)) continue;
    CAPTURE(m.name);
    CHECK(row[m.name].get<double>() == doctest::Approx(m.value_of(view_of(c, outcome))).epsilon(1e-12));
    compared.insert(m.name);
  }
  CHECK(compared == std::set<std::string>{"makespan_s", "period_s", "throughput_samples_per_s", "tokens_per_s",
                                          "dollars_per_billion_tokens", "training_s", "training_dollars", "goodput",
                                          "peak_memory_bytes", "stages", "devices"});
}

TEST_CASE("graph-exact that gives up is called a heuristic under the table and in JSON, and one that ends is not") {
  const std::string line = "graph-exact is a heuristic here: GraphPipe's stages, because the exact search gave up";
  for (const bool gives_up : {true, false}) {
    CAPTURE(gives_up);
    const PlanTable table =
        compare("graph-exact", {fmt::format("plan={{planner: graph-exact, states: {}}}", gives_up ? 1 : 1000000)});
    REQUIRE(row(table, "graph-exact").ran());
    CHECK((to_text(table, TextLayout{.width = 1000}).find(line) != std::string::npos) == gives_up);
    const std::string heuristic = Json::parse(plans_json(table))->at("plans").items().front().at("heuristic").text();
    CHECK((heuristic.find("the exact search gave up") != std::string::npos) == gives_up);
    CHECK(heuristic.empty() != gives_up);
  }
}

TEST_CASE("the row of the scenario's planner equals its run") {
  const PlanTable table = compare("balanced");
  const Experiment scenario = load_experiment(kFile, {"run.iterations=5"});
  const CompiledExperiment p = compile(scenario);
  const Outcome o = run(p, "ideal");
  const PlanRow& r = row(table, "balanced");
  CHECK(r.ran());
  CHECK(r.period == o.report.period);
  CHECK(r.makespan == o.report.makespan);
  CHECK(r.each.value == doctest::Approx(o.report.period.value / 8).epsilon(1e-12));
  CHECK(r.stages == 4);
  CHECK(r.devices == 4);
  CHECK(r.plan == to_text(p.plan));
}

TEST_CASE("every planner that searches is a row, also one without a plan") {
  const PlanTable table = compare("all", {"run.micro_batches=2"});
  std::size_t searching = 0;
  for (const PlannerDef* def : planners::catalog()) searching += def->name != "explicit" && def->name != "layout";
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
    if (r.ran() && r.model_limit.value > 0) CHECK(r.model_limit.value <= r.predicted.value * (1 + 1e-9));
}

TEST_CASE("no simulated plan is below the bound of all plans") {
  int bounded = 0;
  for (const std::string file :
       {"quickstart", "graph-pipeline", "edge-inference", "pipedream-replicas", "gpt-2bw-8x2"}) {
    CAPTURE(file);
    for (const std::string backend : {"ideal", "fluid"}) {
      const PlanTable table =
          compare_plans(load_experiment("scenarios/examples/" + file + ".yaml", {}),
                        {.planners = "balanced,spp,pipedream,piper,2bw,graphpipe,layerpipe", .backend = backend});
      for (const PlanRow& r : table.rows) {
        if (!r.ran()) continue;
        CAPTURE(r.planner);
        CHECK(r.time_bound.value > 0);
        CHECK(r.time_bound.value <= r.each.value * (1 + 1e-9));
        ++bounded;
      }
    }
  }
  CHECK(bounded > 50);
}

TEST_CASE("no simulated plan is below the bound of all plans, with any synchronous schedule") {
  const std::vector<std::string> models{
      "model={builder: uniform, layers: 4, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}",
      "model={builder: uniform, layers: 8, forward: 1 ms, input_gradient: 2 ms, weight_gradient: 5 ms}",
      listed_chain({{3, 1, 4}, {1, 5, 9}, {2, 6, 5}, {3, 5, 8}, {9, 7, 9}, {3, 2, 3}, {8, 4, 6}, {2, 6, 4}}),
      listed_chain({{1, 2, 1}, {9, 8, 7}, {1, 1, 2}, {2, 1, 1}})};  // The second layer wants replicas.
  int bounded = 0, replicated = 0;
  for (const ScheduleDef* def : schedules::catalog()) {
    if (!def->flushes || !def->trains || def->name == "csv") continue;
    CAPTURE(def->name);
    for (const int micro_batches : {1, 2, 4, 8})
      for (const int stages : {4, 8})
        for (const std::string& model : models) {
          const PlanTable table =
              compare("balanced,pipedream,piper",
                      {model, kMixed, fmt::format("run.schedule={}", def->name),
                       fmt::format("run.micro_batches={}", micro_batches),
                       fmt::format("plan={{planner: balanced, stages: {}, micro_batch_size: 2}}", stages)});
          for (const PlanRow& r : table.rows) {
            if (!r.ran()) continue;
            CAPTURE(micro_batches);
            CAPTURE(model);
            CAPTURE(r.plan);
            CHECK(r.time_bound.value > 0);
            CHECK(r.time_bound.value <= r.each.value * (1 + 1e-9));
            ++bounded, replicated += r.devices > r.stages;
          }
        }
  }
  MESSAGE(bounded, " plans, ", replicated, " with replicas");
  CHECK(bounded > 900);
  CHECK(replicated > 250);
}

TEST_CASE("the bound of four equal stages with split backwards is F and I of each layer and W of the first") {
  const std::vector<std::string> equal{
      "model={builder: uniform, layers: 4, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}",
      "cluster={generator: uniform, devices: 4, type: any, types: {any: {peak: 1 TFLOP/s, memory: 80 GiB, "
      "memory_bandwidth: 1 TB/s}}, link: {bandwidth: 1 TB/s, latency: 0 s}}",
      "plan={planner: balanced, stages: 4}", "run.micro_batches=1"};
  std::vector<std::string> split = equal;
  split.push_back("run.schedule=zb-h1");
  CHECK(row(compare("balanced", equal), "balanced").time_bound.value == doctest::Approx(12e-3).epsilon(1e-9));
  CHECK(row(compare("balanced", split), "balanced").time_bound.value == doctest::Approx(9e-3).epsilon(1e-9));
}

TEST_CASE("a time below its bound is marked, unless by rounding") {
  PlanTable table;
  PlanRow r;
  r.planner = "balanced";
  r.each = {9e-3}, r.time_bound = {12e-3};
  r.predicted = {1}, r.model_limit = {1 + 1e-12};
  table.rows = {r};
  const std::string text = to_text(table);
  CHECK(text.find(" -25 % ") != std::string::npos);
  CHECK(text.find(" 0 % ") != std::string::npos);
  CHECK(text.find("model's limit") != text.rfind("model's limit"));  // As the name and in the legend.
}

TEST_CASE("unknown planners and backends that do not simulate are refused") {
  CHECK_THROWS_AS(compare("balancd"), InputError);
  CHECK_THROWS_AS(compare_plans(load_experiment(kFile, {}), {.backend = "cpu"}), InputError);
}

}  // namespace stagecraft::plan_table_test
