// Orders made by the reference systems: read, checked and timed under three cost models.

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/backend.hpp"
#include "sim/core/file.hpp"
#include "sim/report/report.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;
using ParsedJson = nlohmann::json;

namespace {

constexpr int kIterations = 4;  // the period is T(4) - T(3)

Report measured(const CsvSchedule& csv, const Plan& plan, const ParsedJson& model) {
  StageCost cost;
  cost.forward = cost.recompute = Seconds{model["cost"]["F"]};
  cost.input_gradient = Seconds{model["cost"]["I"]};
  cost.weight_gradient = Seconds{model["cost"]["W"]};
  cost.backward = cost.input_gradient + cost.weight_gradient;
  const Program program = test::lowered(complete(csv.schedule, plan, kIterations), plan, uniform_costs(plan, cost),
                                        test::pure_delays(kIterations));
  const Cluster cluster = test::delay_cluster(program.devices, model["comm"]);
  return measure(program, get_from(backends::all(), "backend", "ideal").run(program, cluster, {}), cluster);
}

}  // namespace

TEST_CASE("every reference schedule is accepted and gives the reference's times and activations") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const ParsedJson index = ParsedJson::parse(read_file(folder + "/schedules/index.json"));
  int files = 0, without_period = 0;
  for (const ParsedJson& entry : index["entries"]) {
    const std::string name = entry["file"];
    CAPTURE(name);
    const CsvSchedule csv = parse_schedule_csv(read_file(folder + "/schedules/" + name), name);
    std::vector<ScheduleProblem> problems;
    const Plan plan = implied_plan(csv, problems);
    CHECK(problems.empty());
    CHECK(validate(csv.schedule, plan, {}).empty());
    CHECK(plan.stage_count() == entry["num_stages"]);
    for (const auto& [stage, rank] : entry["stage_to_rank"].items())
      CHECK(plan.stages[StageId{std::stoul(stage)}].devices() == std::vector<DeviceId>{DeviceId{rank.get<int>()}});
    CHECK(parse_schedule_csv(to_csv(csv.schedule), name).schedule == csv.schedule);
    for (const auto& item : entry["metrics"].items()) {
      const std::string model = item.key();
      const ParsedJson& expected = item.value();
      CAPTURE(model);
      const Report report = measured(csv, plan, index["cost_models"][model]);
      CHECK(std::abs(report.makespan.value - expected["makespan"].get<double>()) <= 1e-6);
      if (const auto period = expected.find("steady_period_nosync"); period != expected.end())
        CHECK(std::abs(report.period.value - period->get<double>()) <= 1e-6);
      else
        ++without_period;  // not given for the longest
      double busiest = 0;
      for (const DeviceReport& d : report.devices) busiest = std::max(busiest, d.busy.value);
      CHECK(std::abs(busiest - expected["busy_max"].get<double>()) <= 1e-6);
      CHECK(std::abs(1 - busiest / report.makespan.value - expected["bubble_makespan"].get<double>()) <= 1e-6);
      const ParsedJson& peaks = entry["peak_act_chunks_alpha0"];
      REQUIRE(peaks.size() == report.devices.size());
      for (std::size_t d = 0; d < peaks.size(); ++d)
        CHECK(report.devices[DeviceId{d}].memory.activations == peaks[d].get<double>());
    }
    ++files;
  }
  CHECK(files >= 205);
  CHECK(without_period <= files / 60);
}

TEST_CASE("the reference's bad schedules are each refused for their reason") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const struct {
    const char *file, *code;
    int rank, column;
    const char* op;
  } cases[] = {
      {"W_before_I", "local-order", 0, 1, "0W0"},
      {"deadlock_cycle", "cycle", 0, 1, "0B0"},
      {"dup_B", "duplicate", 1, 4, "1B1"},
      {"missing_B", "missing", 1, -1, "1B1"},
      {"stage_on_two_ranks", "wrong-rank", 1, 0, "1F1"},
      // The last rank runs micro-batches 1 to 4 and the others 0 to 3: no chain goes through all of them, and of 4
      // there is nothing elsewhere.
      {"torch280_1F1B_ir_p4_m4", "chain", 3, 9, "3F4"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.file);
    const CsvSchedule csv = parse_schedule_csv(read_file(folder + "/schedules/invalid/" + c.file + ".csv"), c.file);
    std::vector<ScheduleProblem> problems;
    const Plan plan = implied_plan(csv, problems);
    if (problems.empty()) problems = validate(csv.schedule, plan, {});
    REQUIRE_FALSE(problems.empty());
    CHECK_THROWS(throw_if_any(problems, c.file));
    const ScheduleProblem& p = problems.front();
    CAPTURE(to_text(p));
    CHECK(p.code == c.code);
    CHECK(p.rank == c.rank);
    CHECK(p.column == c.column);
    CHECK(p.op == c.op);
  }
}
