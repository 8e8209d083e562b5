// Optimal or searched orders of the reference, compared with our rule-based orders under the same costs.

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/file.hpp"
#include "sim/report/report.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;
using ParsedJson = nlohmann::json;

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
double at(const ParsedJson& value, int stage) { return value.is_array() ? value[stage] : value; }

struct Made {
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

void play(Made& m, const Plan& plan, const StageCosts& costs, int iterations = 1) {
  m.program = test::lowered(m.order, plan, costs, test::pure_delays(iterations));
  m.timeline = test::run_ideal(m.program, m.cluster);
}

Made made(std::string_view name, const std::string& options, const Plan& plan, const StageCosts& costs, double hop,
          int iterations = 1) {
  const ScheduleDef& def = get_from(schedules::all(), "schedule", name);
  const config::Value map = def.fields ? test::checked(options, *def.fields) : config::Value{};
  Made m;
  m.cluster = test::delay_cluster(plan.device_count(), hop);
  m.order = build_schedule(def, {.plan = plan,
                                 .costs = costs,
                                 .iterations = iterations,
                                 .options = read_options(def, def.fields ? &map : nullptr),
                                 .cluster = &m.cluster});
  play(m, plan, costs, iterations);
  return m;
}

StageCosts stage_costs(const ParsedJson& used, int stages) {
  StageCosts costs;
  for (int s = 0; s < stages; ++s) costs.add({times(at(used["F"], s), at(used["I"], s), at(used["W"], s))});
  return costs;
}

/// Whether a rank keeps at most `limit` units: a forward takes two, and each gradient frees one.
bool fits(const std::vector<Op>& row, int limit) {
  int kept = 0, most = 0;
  for (const Op& op : row) most = std::max(most, kept += op.kind == OpKind::Forward ? 2 : -1);
  return most <= limit;
}

/// Counts, up to two, the orders that differ from this one by a swap of two neighbors and are no longer and no larger.
int equal_neighbours(const Schedule& order, const Plan& plan, const StageCosts& costs, double hop, int limit) {
  Made m;
  m.cluster = test::delay_cluster(plan.device_count(), hop);
  m.order = complete(order, plan, 1);
  play(m, plan, costs);
  const double span = m.span();
  int found = 0;
  for (int d = 0; d < order.device_count(); ++d)
    for (std::size_t i = 1; i < order.row(DeviceId{d}).size() && found < 2; ++i) {
      Schedule other = order;
      std::swap(other.ranks[RankId{d}][i - 1], other.ranks[RankId{d}][i]);
      m.order = complete(other, plan, 1);
      if (!validate(m.order, plan, {}).empty() || !fits(other.row(DeviceId{d}), limit)) continue;
      play(m, plan, costs);
      found += m.span() <= span + 1e-9;
    }
  return found;
}

std::string memory(double limit, int ranks) { return "{memory: " + std::to_string(limit / (2.0 * ranks)) + "}"; }

ParsedJson index_of(const std::string& folder) {
  return ParsedJson::parse(read_file(folder + "/schedules/index.json"));
}

}  // namespace

TEST_CASE("uniform costs: our span is the optimum of the integer program in 10 of 10 points") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  int points = 0;
  for (const ParsedJson& point : ParsedJson::parse(read_file(folder + "/schedules/published/ilp_results.json"))) {
    const ParsedJson& pt = point["pt"];  // p, m, F, I, W, hop, memory with 2 for a forward
    const int p = pt[0], m = pt[1];
    CAPTURE(pt.dump());
    const Plan plan = chain_plan(p, p, m);
    const Made ours = made("zb-2p", memory(pt[6], p), plan, uniform_costs(plan, times(pt[2], pt[3], pt[4])), pt[5]);
    CHECK(ours.span() == doctest::Approx(point["ilp"].get<double>()).epsilon(1e-12));
    ++points;
  }
  CHECK(points >= 10);
}

TEST_CASE("unequal stages: our span is the published heuristic's, the optimum in 6 of these 12 points") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  int points = 0, optimal = 0;
  const ParsedJson index = index_of(folder);
  for (const ParsedJson& entry : index["entries"]) {
    if (entry["name"] != "zb_ILP_het") continue;
    const std::string file = entry["file"];
    CAPTURE(file);
    const int p = entry["p"], m = entry["m"];
    const ParsedJson &used = entry["costs_used"], &result = entry["measured_result"];
    const Plan plan = chain_plan(p, p, m);
    const StageCosts costs = stage_costs(used, p);
    const double span = made("zb-2p", memory(used["limit"], p), plan, costs, used["comm"]).span();
    CHECK(span <= result["heuristic_objective"].get<double>() + 1e-9);
    CHECK(span >= result["ilp_objective"].get<double>() - 1e-9);
    optimal += span <= result["ilp_objective"].get<double>() + 1e-9;
    MESSAGE(file, ": ours ", span, ", optimum ", result["ilp_objective"].get<double>());
    ++points;
  }
  CHECK(points >= 12);
  CHECK(optimal >= 6);
}

TEST_CASE("no order of the integer program is the only optimum") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  int points = 0;
  const ParsedJson index = index_of(folder);
  for (const ParsedJson& entry : index["entries"]) {
    if (entry["name"] != "zb_ILP" && entry["name"] != "zb_ILP_het") continue;
    const std::string file = entry["file"];
    CAPTURE(file);
    const int p = entry["p"];
    const ParsedJson& used = entry["costs_used"];
    const Schedule order = parse_schedule_csv(read_file(folder + "/schedules/" + file), file).schedule;
    const Plan plan = chain_plan(p, p, entry["m"]);
    CHECK(equal_neighbours(order, plan, stage_costs(used, p), used["comm"], used["limit"]) == 2);
    ++points;
  }
  CHECK(points >= 18);
}

TEST_CASE("v-adaptive has the period and memory of the orders searched under a memory limit") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  int points = 0;
  const ParsedJson index = index_of(folder);
  for (const ParsedJson& entry : index["entries"]) {
    if (entry["name"] != "zb_v_adaptive") continue;
    const std::string file = entry["file"];
    CAPTURE(file);
    const int p = entry["p"], limit = entry["mem_limit_chunks"];
    const Plan plan = placed_plan(Placement::V, p, 2, entry["m"]);
    const Made ours = made("v-adaptive", memory(limit, p), plan, uniform_costs(plan, times(1, 1, 1)), 0, 4);
    const Report report = measure(ours.program, ours.timeline, ours.cluster);
    CHECK(report.period.value == doctest::Approx(entry["metrics"]["unit_c0"]["steady_period_nosync"].get<double>()));
    for (const DeviceReport& d : report.devices) CHECK(d.memory.activations <= limit);
    ++points;
  }
  CHECK(points >= 4);
}

TEST_CASE("measured stages: the order is no longer than the heuristic's, in no more memory") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const ParsedJson index = index_of(folder);
  for (const ParsedJson& entry : index["entries"]) {
    if (entry["name"] != "zb_auto_measured_het") continue;
    const int p = entry["p"], m = entry["m"];
    const ParsedJson& used = entry["costs_used"];
    const Plan plan = chain_plan(p, p, m);
    StageCosts costs;
    double largest = 0;
    for (int s = 0; s < p; ++s) {
      const double stash = at(used["mem_f"], s);
      largest = std::max(largest, stash);
      costs.add({times(at(used["F"], s), at(used["I"], s), at(used["W"], s), stash)});
    }
    const double limit = used["limit"].get<double>() / largest * 2;  // ours has 2 for the largest forward
    const Made ours = made("zb-2p", memory(limit, p), plan, costs, used["comm"]);
    CHECK(ours.span() <= entry["measured_result"]["span_max"].get<double>() + 1e-6);
  }
}

TEST_CASE("the search is no longer than the integer program on all 22 points") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const auto period = [](const Plan& plan, const StageCosts& costs, double hop, double limit) {
    const std::string options = fmt::format("{{activations: {}, freed_at_input: 0.5, effort: 5}}", limit / 2);
    const Made ours = made("synthesised", options, plan, costs, hop, 6);
    return measure(ours.program, ours.timeline, ours.cluster).period.value;
  };
  int points = 0;
  for (const ParsedJson& point : ParsedJson::parse(read_file(folder + "/schedules/published/ilp_results.json"))) {
    const ParsedJson& pt = point["pt"];
    const int p = pt[0], m = pt[1];
    CAPTURE(pt.dump());
    const Plan plan = chain_plan(p, p, m);
    CHECK(period(plan, uniform_costs(plan, times(pt[2], pt[3], pt[4])), pt[5], pt[6]) <=
          point["ilp"].get<double>() + 1e-9);
    ++points;
  }
  const ParsedJson index = index_of(folder);
  for (const ParsedJson& entry : index["entries"]) {
    if (entry["name"] != "zb_ILP_het") continue;
    CAPTURE(entry["file"].get<std::string>());
    const int p = entry["p"], m = entry["m"];
    const ParsedJson &used = entry["costs_used"], &result = entry["measured_result"];
    const Plan plan = chain_plan(p, p, m);
    const StageCosts costs = stage_costs(used, p);
    CHECK(period(plan, costs, used["comm"], used["limit"]) <= result["ilp_objective"].get<double>() + 1e-9);
    ++points;
  }
  CHECK(points >= 22);
}
