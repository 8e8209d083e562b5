// Orders made by the reference systems: read, checked and timed under three cost models.

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "backends/backend.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule_file/check_file.hpp"
#include "tests/reference/schedules.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::schedules_test {
using test::ParsedJson;

namespace {

constexpr int kIterations = 4;  // the period is T(4) - T(3)

/// A cost model is the seconds of a forward, an input gradient, a weight gradient and a message.
Report measured(const CsvSchedule& csv, const Plan& plan, const std::vector<double>& model) {
  StageCost cost;
  cost.forward = cost.recompute = Seconds{model[0]};
  cost.input_gradient = Seconds{model[1]};
  cost.weight_gradient = Seconds{model[2]};
  cost.backward = cost.input_gradient + cost.weight_gradient;
  const Program program = test::lowered(complete(csv.schedule, plan, kIterations), plan, uniform_costs(plan, cost),
                                        test::pure_delays(kIterations));
  const Cluster cluster = test::delay_cluster(program.devices, model[3]);
  return measure(program, get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {}), cluster);
}

}  // namespace

TEST_CASE("every reference schedule is accepted and gives the reference's times and activations") {
  const ParsedJson data = test::reference_json("schedules.json");
  int files = 0, without_period = 0;
  for (const ParsedJson& entry : data["schedules"]) {
    const std::string name = entry["name"];
    CAPTURE(name);
    const CsvSchedule csv = parse_schedule_csv(test::csv_of(entry), name);
    std::vector<ScheduleProblem> problems;
    const Plan plan = implied_plan(csv, problems);
    CHECK(problems.empty());
    CHECK(validate(csv.schedule, plan, {}).empty());
    const auto ranks = entry["ranks"].get<std::vector<int>>();
    REQUIRE(plan.stage_count() == static_cast<int>(ranks.size()));
    for (std::size_t s = 0; s < ranks.size(); ++s)
      CHECK(plan.stages[StageId{s}].leaders == std::vector<DeviceId>{DeviceId{ranks[s]}});
    CHECK(parse_schedule_csv(to_csv(csv.schedule), name).schedule == csv.schedule);
    for (const auto& item :
         entry["times"].items()) {  // makespan, busiest rank, bubble and, but for the longest, period
      const std::string model = item.key();
      const auto expected = item.value().get<std::vector<double>>();
      CAPTURE(model);
      const Report report = measured(csv, plan, data["cost_models"][model]);
      CHECK(std::abs(report.makespan.value - expected[0]) <= 1e-6);
      if (expected.size() > 3)
        CHECK(std::abs(report.period.value - expected[3]) <= 1e-6);
      else
        ++without_period;
      double busiest = 0;
      for (const DeviceReport& d : report.devices) busiest = std::max(busiest, d.busy.value);
      CHECK(std::abs(busiest - expected[1]) <= 1e-6);
      CHECK(std::abs(1 - busiest / report.makespan.value - expected[2]) <= 1e-6);
      const ParsedJson& peaks = entry["peaks"];
      REQUIRE(peaks.size() == report.devices.size());
      for (std::size_t d = 0; d < peaks.size(); ++d)
        CHECK(report.devices[DeviceId{d}].memory.activations == peaks[d].get<double>());
    }
    ++files;
  }
  CHECK(files >= 205);
  CHECK(without_period <= files / 60);
}

TEST_CASE("bad schedules are refused for their reason, also those that PyTorch's own checks accept") {
  struct Refusal {
    const char* code;
    int level, rank, column;
    const char* op;
  };
  const std::map<std::string, Refusal> refusals = {
      {"W_before_I", {"local-order", 3, 0, 1, "0W0"}},
      {"deadlock_cycle", {"cycle", 4, 0, 1, "0B0"}},
      {"dup_B", {"duplicate", 2, 1, 4, "1B1"}},
      {"missing_B", {"missing", 2, 1, -1, "1B1"}},
      {"stage_on_two_ranks", {"wrong-rank", 2, 1, 0, "1F1"}},
      // The last rank runs micro-batches 1 to 4 and the others 0 to 3: no chain goes through all of them, and of 4
      // there is nothing elsewhere.
      {"torch280_1F1B_ir_p4_m4", {"chain", 2, 3, 9, "3F4"}},
  };
  const ParsedJson data = test::reference_json("schedules.json");
  CHECK(data["invalid"].size() == refusals.size());
  for (const ParsedJson& entry : data["invalid"]) {
    const std::string name = entry["name"];
    CAPTURE(name);
    const Refusal& c = refusals.at(name);
    const CsvSchedule csv = parse_schedule_csv(test::csv_of(entry), name);
    std::vector<ScheduleProblem> problems;
    const Plan plan = implied_plan(csv, problems);
    if (problems.empty()) problems = validate(csv.schedule, plan, {});
    REQUIRE_FALSE(problems.empty());
    CHECK_THROWS(throw_if_any(problems, name));
    const ScheduleProblem& p = problems.front();
    CAPTURE(to_text(p));
    CHECK(p.code == c.code);
    CHECK(p.rank == c.rank);
    CHECK(p.column == c.column);
    CHECK(p.op == c.op);
    const CheckedFile checked = check_file(test::csv_of(entry), name, {});
    REQUIRE_FALSE(checked.problems.empty());
    CHECK(checked.problems.front().code == c.code);
    CHECK(checked.problems.front().level == c.level);
  }
}

}  // namespace stagecraft::schedules_test
