#include "sim/run/run.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/plan/ties.hpp"
#include "sim/program/check.hpp"
#include "sim/run/limits.hpp"
#include "sim/run/places.hpp"
#include "sim/run/play.hpp"
#include "sim/run/profiles.hpp"
#include "sim/run/version.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft {

using config::Value;

namespace {

/// The optimizer that was asked for takes the place of the two moments that models assume; mixed precision keeps its
/// 32-bit copy of the weights.
void keep_state(const Scenario& scenario, ModelGraph& model) {
  const OptimizerStateTensors kept = state_tensors(scenario.training.optimizer.kind, scenario.weights_rule);
  const int tensors = kept.count() - kept.bare;  // The program itself charges for the momentum of bare gradients.
  Precision& p = model.precision;
  p.optimizer = p.weight < 4 ? 4 + 4.0 * tensors : p.weight * tensors;
}

/// A cluster without its changes, until the end.
class AsRated {
 public:
  explicit AsRated(Cluster& cluster)
      : cluster_(cluster), changes_(std::exchange(cluster.changes, {})), jitter_(std::exchange(cluster.jitter, {})) {}
  void end() { cluster_.changes = std::move(changes_), cluster_.jitter = jitter_; }

 private:
  Cluster& cluster_;
  std::vector<Change> changes_;
  Jitter jitter_;
};

/// A real machine does not become slower or fail because a scenario says so, and numbers without it would be others.
void require_as_rated(const Value& cluster, const std::string& backend) {
  for (const char* key : {"changes", "jitter"})
    if (const Value* part = cluster.find(key);
        part && (part->is_map() ? config::as_share(part->at("most")) > 0 : !part->items.empty()))
      throw InputError({{part->where, fmt::format("cluster.{}", key),
                         fmt::format("the backend '{}' really runs on this machine, which does not change so", backend),
                         "--backend ideal, fluid or simgrid, or leave it out", "changes"}});
}

/// Tasks apart, as LayerPipe has them, have no way yet to move weights between devices.
void require_whole_stages(const Plan& plan, const std::string& backend) {
  for (const Stage& stage : plan.stages)
    if (stage.task != StageTask::Whole)
      throw InputError(fmt::format("the backend '{}' really trains, which plans of single tasks, as of stage '{}', "
                                   "are too coarse for: they do not say where weights go",
                                   backend, stage.name),
                       "--backend ideal or simgrid, or another planner");
}

}  // namespace

Prepared lay_out(const Scenario& scenario) {
  Prepared p;
  const Value& tree = scenario.tree;
  const ScheduleDef& schedule = get_from(schedules::all(), "schedule", scenario.schedule);

  p.model = for_part(tree, "model", [](const Value& part) { return build_model(part); });
  p.cluster = for_part(tree, "cluster", [](const Value& part) { return build_cluster(part); });
  if (tree.has("training")) keep_state(scenario, p.model);
  if (scenario.profile) {
    apply(*scenario.profile, p.cluster);
    require_same_parts(*scenario.profile, tree.at("cluster"));
  }
  const CostTable costs(p.model, p.cluster, scenario.profile ? &*scenario.profile : nullptr);

  const auto begin = std::chrono::steady_clock::now();
  p.planned = for_part(tree, "plan", [&](const Value& part) {
    const PlannerDef& planner = get_from(planners::all(), "planner", part.at("planner").text);
    try {
      return planner.plan({p.model, p.cluster, costs, part, scenario.micro_batches,
                           placing_of(schedule, &tree.at("run").at("schedule"))});
    } catch (const Infeasible& e) {
      throw with_second_place(e, part, tree.at("cluster"));
    }
  });
  p.planning = Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  p.plan = std::move(p.planned.plan);
  if (schedule.flushes && schedule.trains) p.plan.ties = ties_of(p.plan, p.model);
  p.costs = for_part(tree, "plan", [&](const Value&) { return checked(stage_costs(p.plan, costs)); });
  return p;
}

Prepared prepare(const Scenario& scenario) {
  Prepared p = lay_out(scenario);
  const Value& tree = scenario.tree;
  const int iterations = scenario.lowering.iterations;
  const ScheduleDef& schedule = get_from(schedules::all(), "schedule", scenario.schedule);
  AsRated rated(p.cluster);  // An order is made for the machine as rated.
  p.schedule = for_part(tree, "run", [&](const Value& part) {
    check_size(p.plan, iterations, schedule.trains);
    const Value& options = part.at("schedule");
    return build_schedule(schedule, {.plan = p.plan,
                                     .costs = p.costs,
                                     .iterations = iterations,
                                     .options = &options,
                                     .cluster = &p.cluster,
                                     .one_send_at_a_time = scenario.lowering.fifo_sends,
                                     .play = [&](const Schedule& one) { return play(one, p, scenario); }});
  });
  rated.end();
  throw_if_any(validate(p.schedule, p.plan, {.iterations = iterations, .trains = schedule.trains}), scenario.schedule,
               tree.at("run").at("schedule"));

  p.program = for_part(tree, "run", [&](const Value&) {
    return lower(p.schedule, p.plan, p.costs, scenario.weights_rule, scenario.lowering);
  });
  check_program(p.program);
  for_part(tree, "plan", [&](const Value&) { check_memory(p.program, p.cluster); });
  return p;
}

Timeline execute(const Scenario& scenario, const Prepared& p, const std::string& backend, bool one_thread) {
  const BackendDef& def = get_from(backends::all(), "backend", backend);
  if (const std::string why = def.why_not(); !why.empty()) throw BackendError(backend + ": " + why);
  if (def.clock != Clock::Simulated) {
    require_whole_stages(p.plan, backend);
    require_as_rated(scenario.tree.at("cluster"), backend);
  }
  const Work work{p.model, p.plan, scenario.weights_rule, scenario.training, scenario.emulated};
  Timeline timeline = def.run(p.program, p.cluster,
                              {.seed = scenario.seed, .work = &work, .one_thread = one_thread, .gpu = scenario.gpu});
  timeline.clock = def.clock;
  std::string where = def.clock == Clock::Simulated ? std::string() : machine();
  if (const std::string& devices = timeline.provenance.machine; !devices.empty()) where += ", " + devices;
  timeline.provenance = {backend,         def.version(),
                         version(),       where,
                         scenario.hash(), def.clock == Clock::Simulated ? scenario.seed : scenario.training.seed};
  return timeline;
}

Outcome run(const Scenario& scenario, const Prepared& p, const std::string& backend) {
  Outcome o;
  o.timeline = execute(scenario, p, backend);
  if (o.timeline.elsewhere) return o;
  o.report = measure(p.program, o.timeline, p.cluster);
  check_finite(o.report.makespan.value);
  return o;
}

Bytes fullest_of(const Report& report, const Cluster& cluster) {
  Bytes most;
  for (std::size_t d = 0; d < report.devices.size(); ++d) {
    const MemoryPeak& m = report.devices[d].memory;
    if (!m.fits())
      throw Infeasible("memory",
                       fmt::format("{} needs {} of {} with the messages that are on their way", cluster.devices[d].name,
                                   to_text(m.total), memory_text(m.capacity + m.reserved, m.reserved)));
    most = std::max(most, m.total);
  }
  return most;
}

}  // namespace stagecraft
