// Optimal or searched orders of the reference, compared with our rule-based orders under the same costs.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/result/report.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tests/reference/schedules.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::solved_test {
using test::ParsedJson;

namespace {

StageCost times(double forward, double input, double weight, double stash = 1) {
  StageCost cost;
  cost.forward = cost.recompute = Seconds{forward};
  cost.input_gradient = Seconds{input};
  cost.weight_gradient = Seconds{weight};
  cost.backward = cost.input_gradient + cost.weight_gradient;
  cost.memory.stash = Bytes{stash};
  return cost;
}

/// The cost of a stage: one number for all stages, or a list with one for each.
double value_of(const ParsedJson& value, int stage) { return value.is_array() ? value[stage] : value; }

struct SimulatedOrder {
  Schedule order;
  Program program;
  Timeline timeline;
  Cluster cluster;

  /// The longest time from the first start to the last end on a device.
  double span() const {
    double longest = 0;
    for (int d = 0; d < program.devices; ++d) {
      double first = 1e300, last = 0;
      for (const InstructionId n : program.instructions.ids()) {
        const Instruction& i = program.instructions[n];
        if (i.device.value != d || !i.is_compute() || i.kind == InstructionKind::Update) continue;
        first = std::min(first, timeline.start[n]), last = std::max(last, timeline.end[n]);
      }
      longest = std::max(longest, last - first);
    }
    return longest;
  }
};

void simulate_order(SimulatedOrder& m, const Plan& plan, const StageCosts& costs, int iterations = 1) {
  m.program = test::lowered(m.order, plan, costs, test::pure_delays(iterations));
  m.timeline = test::run_ideal(m.program, m.cluster);
}

SimulatedOrder simulate_schedule(std::string_view name, const std::string& options, const Plan& plan,
                                 const StageCosts& costs, double hop, int iterations = 1) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const config::Value map = def.fields ? test::checked(options, *def.fields) : config::Value{};
  SimulatedOrder m;
  m.cluster = test::delay_cluster(plan.device_count(), hop);
  m.order = build_schedule(def, {.plan = plan,
                                 .costs = costs,
                                 .iterations = iterations,
                                 .options = read_options(def, def.fields ? &map : nullptr),
                                 .cluster = &m.cluster});
  simulate_order(m, plan, costs, iterations);
  return m;
}

StageCosts stage_costs(const ParsedJson& used, int stages) {
  StageCosts costs;
  for (int s = 0; s < stages; ++s)
    costs.add({times(value_of(used["F"], s), value_of(used["I"], s), value_of(used["W"], s))});
  return costs;
}

/// Whether a rank keeps at most `limit` units: a forward takes two, and each gradient frees one.
bool fits(const std::vector<Op>& row, int limit) {
  int stashed = 0, peak = 0;
  for (const Op& op : row) peak = std::max(peak, stashed += op.kind == OpKind::Forward ? 2 : -1);
  return peak <= limit;
}

/// Counts, up to two, the orders that differ from this one by a swap of two neighbors and are no longer and no larger.
int count_equal_neighbors(const Schedule& order, const Plan& plan, const StageCosts& costs, double hop, int limit) {
  SimulatedOrder m;
  m.cluster = test::delay_cluster(plan.device_count(), hop);
  m.order = complete(order, plan, 1);
  simulate_order(m, plan, costs);
  const double span = m.span();
  int count = 0;
  for (int d = 0; d < order.device_count(); ++d)
    for (std::size_t i = 1; i < order.row(DeviceId{d}).size() && count < 2; ++i) {
      Schedule other = order;
      std::swap(other.ranks[RankId{d}][i - 1], other.ranks[RankId{d}][i]);
      m.order = complete(other, plan, 1);
      if (!validate(m.order, plan, {}).empty() || !fits(other.row(DeviceId{d}), limit)) continue;
      simulate_order(m, plan, costs);
      count += m.span() <= span + 1e-9;
    }
  return count;
}

std::string memory(double limit, int ranks) { return "{memory: " + std::to_string(limit / (2.0 * ranks)) + "}"; }

/// The schedules of one family.
std::vector<ParsedJson> entries_of_family(std::string_view name) {
  ParsedJson data = test::reference_json("schedules.json");
  std::vector<ParsedJson> entries;
  for (ParsedJson& entry : data["schedules"])
    if (entry["family"] == name) entries.push_back(std::move(entry));
  return entries;
}

/// A point of the integer program: equal stages under a memory limit.
struct Point {
  Plan plan;
  StageCosts costs;
  double message, memory, optimum;
};

std::vector<Point> integer_program() {
  std::vector<Point> points;
  for (const test::ReferenceRow& row : test::reference_rows("integer_program.csv")) {
    const Plan plan = chain_plan(row.integer("p"), row.integer("p"), row.integer("m"));
    const StageCost cost = times(row.number("forward"), row.number("input_gradient"), row.number("weight_gradient"));
    points.push_back(
        {plan, uniform_costs(plan, cost), row.number("message"), row.number("memory"), row.number("optimum")});
  }
  return points;
}

}  // namespace

TEST_CASE("uniform costs: our span is the optimum of the integer program in 10 of 10 points") {
  const std::vector<Point> points = integer_program();
  for (const Point& point : points) {
    CAPTURE(point.optimum);
    const std::string options = memory(point.memory, point.plan.device_count());
    const SimulatedOrder ours = simulate_schedule("zb-2p", options, point.plan, point.costs, point.message);
    CHECK(ours.span() == doctest::Approx(point.optimum).epsilon(1e-12));
  }
  CHECK(points.size() >= 10);
}

TEST_CASE("unequal stages: our span is the published heuristic's, the optimum in 6 of these 12 points") {
  int points = 0, optimal = 0;
  for (const ParsedJson& entry : entries_of_family("zb_ILP_het")) {
    const std::string file = entry["name"];
    CAPTURE(file);
    const int p = entry["p"], m = entry["m"];
    const ParsedJson &used = entry["costs"], &spans = entry["spans"];
    const Plan plan = chain_plan(p, p, m);
    const StageCosts costs = stage_costs(used, p);
    const double span = simulate_schedule("zb-2p", memory(used["limit"], p), plan, costs, used["comm"]).span();
    CHECK(span <= spans["heuristic"].get<double>() + 1e-9);
    CHECK(span >= spans["optimum"].get<double>() - 1e-9);
    optimal += span <= spans["optimum"].get<double>() + 1e-9;
    MESSAGE(file, ": ours ", span, ", optimum ", spans["optimum"].get<double>());
    ++points;
  }
  CHECK(points >= 12);
  CHECK(optimal >= 6);
}

TEST_CASE("no order of the integer program is the only optimum") {
  int points = 0;
  for (const char* name : {"zb_ILP", "zb_ILP_het"})
    for (const ParsedJson& entry : entries_of_family(name)) {
      const std::string file = entry["name"];
      CAPTURE(file);
      const int p = entry["p"];
      const ParsedJson& used = entry["costs"];
      const Schedule order = parse_schedule_csv(test::csv_of(entry), file).schedule;
      const Plan plan = chain_plan(p, p, entry["m"]);
      CHECK(count_equal_neighbors(order, plan, stage_costs(used, p), used["comm"], used["limit"]) == 2);
      ++points;
    }
  CHECK(points >= 18);
}

TEST_CASE("v-adaptive has the period and memory of the orders searched under a memory limit") {
  int points = 0;
  for (const ParsedJson& entry : entries_of_family("zb_v_adaptive")) {
    const std::string file = entry["name"];
    CAPTURE(file);
    const int p = entry["p"], limit = entry["limit"];
    const Plan plan = placed_plan(Placement::V, p, 2, entry["m"]);
    const SimulatedOrder ours =
        simulate_schedule("v-adaptive", memory(limit, p), plan, uniform_costs(plan, times(1, 1, 1)), 0, 4);
    const Report report = measure(ours.program, ours.timeline, ours.cluster);
    CHECK(report.period.value == doctest::Approx(entry["times"]["unit_c0"][3].get<double>()));
    for (const DeviceReport& d : report.devices) CHECK(d.memory.activations <= limit);
    ++points;
  }
  CHECK(points >= 4);
}

TEST_CASE("measured stages: the order is no longer than the heuristic's, in no more memory") {
  const std::vector<ParsedJson> entries = entries_of_family("zb_auto_measured_het");
  CHECK(entries.size() == 1);
  for (const ParsedJson& entry : entries) {
    const int p = entry["p"], m = entry["m"];
    const ParsedJson& used = entry["costs"];
    const Plan plan = chain_plan(p, p, m);
    StageCosts costs;
    double largest = 0;
    for (int s = 0; s < p; ++s) {
      const double stash = value_of(used["mem_f"], s);
      largest = std::max(largest, stash);
      costs.add({times(value_of(used["F"], s), value_of(used["I"], s), value_of(used["W"], s), stash)});
    }
    const double limit = used["limit"].get<double>() / largest * 2;  // ours has 2 for the largest forward
    const SimulatedOrder ours = simulate_schedule("zb-2p", memory(limit, p), plan, costs, used["comm"]);
    CHECK(ours.span() <= entry["spans"]["longest"].get<double>() + 1e-6);
  }
}

TEST_CASE("the search is no longer than the integer program on all 22 points") {
  const auto period = [](const Plan& plan, const StageCosts& costs, double hop, double limit) {
    const std::string options = fmt::format("{{activations: {}, freed_at_input: 0.5, effort: 5}}", limit / 2);
    const SimulatedOrder ours = simulate_schedule("synthesised", options, plan, costs, hop, 6);
    return measure(ours.program, ours.timeline, ours.cluster).period.value;
  };
  int points = 0;
  for (const Point& point : integer_program()) {
    CAPTURE(point.optimum);
    CHECK(period(point.plan, point.costs, point.message, point.memory) <= point.optimum + 1e-9);
    ++points;
  }
  for (const ParsedJson& entry : entries_of_family("zb_ILP_het")) {
    CAPTURE(entry["name"].get<std::string>());
    const int p = entry["p"], m = entry["m"];
    const ParsedJson &used = entry["costs"], &spans = entry["spans"];
    const Plan plan = chain_plan(p, p, m);
    const StageCosts costs = stage_costs(used, p);
    CHECK(period(plan, costs, used["comm"], used["limit"]) <= spans["optimum"].get<double>() + 1e-9);
    ++points;
  }
  CHECK(points >= 22);
}

}  // namespace stagecraft::solved_test
