#include "sim/run/run.hpp"

#include "backends/backend.hpp"
#include "sim/plan/planner.hpp"
#include "sim/program/check.hpp"
#include "sim/run/version.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

Prepared prepare(const Scenario& scenario) {
  Prepared p;
  const config::Value& tree = scenario.tree;
  p.model = build_model(tree.at("model"));
  p.cluster = build_cluster(tree.at("cluster"));

  const CostTable costs(p.model, p.cluster);
  const PlannerDef& planner = get_from(planners::all(), "planner", tree.at("plan").at("planner").text);
  p.plan = planner.plan({p.model, p.cluster, costs, tree.at("plan"), scenario.micro_batches});
  check_plan(p.plan);
  p.costs = stage_costs(p.plan, costs);

  const ScheduleDef& schedule = get_from(schedules::all(), "schedule", scenario.schedule);
  const int iterations = scenario.lowering.iterations;
  p.schedule = build_schedule(schedule, {.plan = p.plan, .costs = p.costs, .iterations = iterations, .options = &tree.at("run").at("schedule")});
  throw_if_any(validate(p.schedule, p.plan, {.iterations = iterations, .trains = schedule.trains}), "schedule '" + scenario.schedule + "'");

  p.program = lower(p.schedule, p.plan, p.costs, get_from(weights::all(), "weights policy", scenario.weights), scenario.lowering);
  check_program(p.program);
  check_memory(p.program, p.cluster);
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
  return o;
}

}  // namespace stagecraft
