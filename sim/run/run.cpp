#include "sim/run/run.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/planner.hpp"
#include "sim/program/check.hpp"
#include "sim/run/limits.hpp"
#include "sim/run/version.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {
namespace {

/// What a part of the scenario is made into. Problems name their path from the top, and the part when they name
/// nothing.
template <class Make>
auto within(const char* key, const config::Value& part, Make&& make) {
  try {
    return make();
  } catch (const InputError& e) {
    std::vector<Diagnostic> problems = e.problems();
    for (Diagnostic& p : problems) {
      if (p.where.line == 0 && p.where.file.empty()) p.where = part.where;
      if (p.path.empty()) p.path = key;
      if (p.path != key && p.path.find_first_of("' ") == std::string::npos) p.path = std::string(key) + '.' + p.path;
    }
    throw InputError(std::move(problems));
  } catch (const Infeasible& e) {
    Diagnostic problem = e.problem();
    if (problem.where.line == 0) problem.where = part.where, problem.path = key;
    throw Infeasible(std::move(problem));
  }
}

/// A plan that does not fit is a matter of two files.
Plan make_plan(const PlannerDef& planner, const PlannerInput& input, const config::Value& cluster) {
  try {
    return within("plan", input.options, [&] { return planner.plan(input); });
  } catch (const Infeasible& e) {
    if (e.code() != "devices") throw;
    Diagnostic problem = e.problem();
    const config::Value* list = input.options.find("devices");
    const Where& place = list ? list->where : cluster.where;
    problem.message += fmt::format(" ({}:{})", place.file, place.line);
    throw Infeasible(std::move(problem));
  }
}

/// Where an op stands in the row of an order that somebody wrote: a cell holds one op, a fused group several.
std::optional<Where> place_in(const config::Value& row, int op) {
  Where where = row.where;
  for (const std::string& cell : split(row.text, ',')) {
    if (!trim(cell).empty()) op -= 1 + static_cast<int>(std::count(cell.begin(), cell.end(), ';'));
    if (op < 0) return where;
    where.column += static_cast<int>(cell.size()) + 1;
  }
  return {};
}

void check_order(const Scenario& scenario, const std::vector<ScheduleProblem>& problems) {
  const config::Value* rows = scenario.tree.at("run").at("schedule").find("rows");
  if (!rows || problems.empty()) return throw_if_any(problems, "schedule '" + scenario.schedule + "'");
  std::vector<Diagnostic> list;
  for (const ScheduleProblem& p : problems) {
    const auto rank = static_cast<std::size_t>(std::max(p.rank, 0));
    const auto where = p.column >= 0 && rank < rows->items.size() ? place_in(rows->items[rank], p.column) : rows->where;
    if (!where && !list.empty()) continue;  // The same again, in a later iteration.
    list.push_back({where.value_or(rows->where), "run.schedule", p.message,
                    p.level >= 4 ? "an op of the cycle has to move before the op that waits for it" : "", p.code});
  }
  if (problems.front().level >= 4) throw Infeasible(std::move(list.front()));
  throw InputError(std::move(list));
}

}  // namespace

Prepared prepare(const Scenario& scenario) {
  Prepared p;
  const config::Value& tree = scenario.tree;
  p.model = within("model", tree.at("model"), [&] { return build_model(tree.at("model")); });
  p.cluster = within("cluster", tree.at("cluster"), [&] { return build_cluster(tree.at("cluster")); });

  const CostTable costs(p.model, p.cluster);
  const PlannerDef& planner = get_from(planners::all(), "planner", tree.at("plan").at("planner").text);
  p.plan = make_plan(planner, {p.model, p.cluster, costs, tree.at("plan"), scenario.micro_batches}, tree.at("cluster"));
  check_plan(p.plan);
  p.costs = stage_costs(p.plan, costs);
  for (const std::vector<StageCost>& stage : p.costs)
    for (const StageCost& c : stage)
      within("plan", tree.at("plan"), [&] { check_finite((c.forward + c.backward + c.update).value); });

  const ScheduleDef& schedule = get_from(schedules::all(), "schedule", scenario.schedule);
  const int iterations = scenario.lowering.iterations;
  const config::Value& run = tree.at("run");
  within("run", run, [&] { check_size(p.plan, iterations, schedule.trains); });
  p.schedule = within("run", run, [&] {
    return build_schedule(schedule,
                          {.plan = p.plan, .costs = p.costs, .iterations = iterations, .options = &run.at("schedule")});
  });
  check_order(scenario, validate(p.schedule, p.plan, {.iterations = iterations, .trains = schedule.trains}));

  const WeightsDef& policy = get_from(weights::all(), "weights policy", scenario.weights);
  p.program = within("run", run, [&] { return lower(p.schedule, p.plan, p.costs, policy, scenario.lowering); });
  check_program(p.program);
  within("plan", tree.at("plan"), [&] { check_memory(p.program, p.cluster); });
  return p;
}

Outcome run(const Scenario& scenario, const Prepared& p, const std::string& backend) {
  const BackendDef& def = get_from(backends::all(), "backend", backend);
  if (const std::string why = def.why_not(); !why.empty()) throw BackendError(backend + ": " + why);
  Outcome o;
  o.timeline = def.run(p.program, p.cluster, {.seed = scenario.seed});
  o.timeline.clock = def.clock;
  o.timeline.provenance = {backend, def.version(), version(), {}, scenario.hash(), scenario.seed};
  o.report = measure(p.program, o.timeline, p.cluster);
  check_finite(o.report.makespan.value);
  return o;
}

}  // namespace stagecraft
