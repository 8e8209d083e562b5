// For `stagecraft plan` and `stagecraft serve`: runs the planners that were asked for on one scenario, and simulates
// each plan as a row of a table.

#include "sim/search/plan_table.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/cluster/memory_reserve.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/experiment/own_orders.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/plan/plan_words.hpp"
#include "sim/planners/shared/bounds.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/search/replay.hpp"

namespace stagecraft {
namespace {

/// The planners that `words` names; "all" means every planner that searches, and the scenario's own.
std::vector<std::string> names_of(const std::string& words, const std::string& configured) {
  std::vector<std::string> names;
  if (words == "all") {
    for (const PlannerDef* def : planners::catalog())
      if ((def->name != "explicit" && def->name != "layout") || configured == def->name) names.emplace_back(def->name);
    return names;
  }
  for (const std::string& word : split(words, ',')) {
    const std::string name(get_from(planners::catalog(), "planner", std::string(trim(word))).name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Whether the planner of a row has to stop: at the end of its time, or where all are asked to. Time of the processor,
/// so that no other load of the machine leaves a planner out.
std::function<bool()> limit_of(const PlanTableOptions& asked) {
  return [&asked, begin = std::clock()] {
    return asked.stop() || static_cast<double>(std::clock() - begin) > asked.time.value * CLOCKS_PER_SEC;
  };
}

std::string why_stopped(const PlanTableOptions& asked) {
  return asked.stop() ? "it was interrupted"
                      : fmt::format("it had no plan after {}: --time gives it more", to_text(asked.time));
}

/// Null if there is none.
std::shared_ptr<const PlannedExperiment> own_plan(const Experiment& configured, const PlanTableOptions& asked) {
  const StopScope scope(limit_of(asked));
  try {
    return std::make_shared<const PlannedExperiment>(plan_experiment(configured));
  } catch (const Infeasible&) {
  } catch (const InputError&) {
  } catch (const Stopped&) {
  }
  return nullptr;
}

/// Devices of the experiment's own plan, or all if it has none.
int used_devices(const Experiment& configured, const PlannedExperiment* configured_plan) {
  if (!configured_plan) return static_cast<int>(configured.cluster->devices.size());
  return static_cast<int>(devices_of(configured_plan->plan).size());
}

/// Whether any planner needs a number of stages that the experiment's plan does not have.
bool needs_stages(const std::vector<std::string>& names, const Experiment& configured) {
  if (configured.plan.stages) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const config::Field* field = get_from(planners::catalog(), "planner", name).fields->find("stages");
    return name != "explicit" && name != "layout" && name != configured.plan.planner->name && field && field->required;
  });
}

bool splits_backward(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const std::vector<Op>& ops) {
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::InputGradient; });
  });
}

void set_lower_bound(const CompiledExperiment& c, bounds::BoundCache& cache, PlanRow& row) {
  try {
    const bounds::Bound& bound = time_bound(c, cache);
    row.time_bound = bound.each;
    row.time_bound_reason = bound.reason;
  } catch (const InputError&) {
    row.time_bound_reason = "some layer has no times on one of the devices";
  }
}

/// The experiment with the plan of another planner, and with LayerPipe's schedule for its tasks.
Experiment with_planner(const std::string& name, const Experiment& configured, int own_devices) {
  const PlannerDef& def = get_from(planners::catalog(), "planner", name);
  Experiment e = variant_of(configured);
  e.run.lowering.iterations = std::max(e.run.lowering.iterations, kFewestIterations);
  if (&def != configured.plan.planner) e.plan = plan_spec_for(def, configured.plan, own_devices, *configured.cluster);
  if (name == "layerpipe" && configured.schedule.has_gradients() && configured.schedule.def->name != name)
    e = with_order(e, schedule_spec(get_from(schedules::catalog(), "schedule", name)), e.weights);
  return e;
}

/// What the rows of a table share.
struct PlanComparison {
  const Experiment& configured;
  const PlanTableOptions& asked;
  std::shared_ptr<const PlannedExperiment>
      configured_plan;  ///< The plan of the experiment itself; null if there is none.
  int devices;          ///< The number that its plan uses.
  bounds::BoundCache cache;
  Shortest shortest;
  PlansByPlanner plans;
};

/// Simulates a plan. Infeasible with the code "memory" where it does not fit, with contention too if that is asked.
PlanRow simulated_row(const std::string& planner, PlannedExperiment planned, PlanComparison& comparison) {
  PlanRow row;
  const CompiledExperiment c = compile(std::move(planned));
  Outcome o = run(c, comparison.asked.backend);
  for (const DeviceId d : devices_of(c.plan)) ++row.devices_of_type[c.cluster().type_of(d).name];
  row.plan_words = plan_words(c.plan);
  measure_row(row, c, o);
  row.predicted = c.report.predicted;
  row.model_limit = c.report.model_limit;
  row.limit_reason = c.report.limit_reason;
  row.heuristic = c.report.heuristic;
  row.states = c.report.states;
  set_lower_bound(c, comparison.cache, row);
  row.seconds = c.planning.value;
  row.each = o.report.period / static_cast<double>(c.experiment.run.micro_batches);
  row.schedule = schedule_title(c.experiment.schedule);
  if (comparison.asked.show) row.plan = to_text(c.plan);
  o.timeline = {};
  if (comparison.shortest.takes(row.period)) {
    row.replayed = contended_result(c);
    if (!row.replayed->ran()) throw Infeasible("memory", row.replayed->why_not);
  }
  comparison.plans[planner] = std::make_shared<const PlannedExperiment>(c);
  return row;
}

/// The plan of an experiment of a row: the earlier plan, where the two experiments differ in their runs alone.
PlannedExperiment plan_of_row(const Experiment& e, const std::optional<PlannedExperiment>& earlier) {
  if (!earlier) return plan_experiment(e);
  const Experiment& made_for = earlier->experiment;
  const bool is_same = made_for.plan == e.plan && made_for.run.micro_batches == e.run.micro_batches;
  return is_same ? plan_again(*earlier, e) : plan_experiment(e);
}

/// The options that turn the configured experiment into that of a row.
std::vector<std::string> sets_of_row(const MemoryRemedy& remedy, const Experiment& configured) {
  const Experiment& e = remedy.experiment;
  std::vector<std::string> sets = remedy.sets;
  if (e.plan.planner != configured.plan.planner) {
    sets = {"plan=" + to_text(e.plan, *e.cluster), fmt::format("run.micro_batches={}", e.run.micro_batches)};
    if (e.run.buffers && !configured.run.buffers)
      sets.push_back(fmt::format("run.buffers={}", e.run.buffers->received));
  }
  if (e.schedule.def == configured.schedule.def) return sets;
  sets.push_back("run.schedule=" + e.schedule.name());
  if (const int iterations = e.run.lowering.iterations; iterations > configured.run.lowering.iterations)
    sets.push_back(fmt::format("run.iterations={}", iterations));  // Its period needs them.
  return sets;
}

PlanRow row_of(const std::string& name, PlanComparison& comparison) {
  const Experiment& configured = comparison.configured;
  PlanRow row;
  const StopScope scope(limit_of(comparison.asked));
  try {
    stop_point();
    std::optional<PlannedExperiment> planned;
    if (comparison.configured_plan && configured.plan.planner->name == name) planned = *comparison.configured_plan;
    for (const MemoryRemedy& remedy : memory_remedies(with_planner(name, configured, comparison.devices))) {
      try {
        planned = plan_of_row(remedy.experiment, planned);
        row = simulated_row(name, *planned, comparison);
        row.change = join(remedy.sets);
        row.sets = sets_of_row(remedy, configured);
        break;
      } catch (const Infeasible& e) {
        if (row.why_not.empty()) row.why_not = e.problem().message;
        const bool lacks_buffers = e.problem().code == "deadlock" && remedy.experiment.run.buffers;
        if (e.problem().code != "memory" && !lacks_buffers) break;
      }
    }
  } catch (const InputError& e) {
    row.why_not = e.problems().front().message;
  } catch (const Infeasible& e) {
    row.why_not = e.problem().message;
  } catch (const BackendError& e) {
    row.why_not = e.what();
  } catch (const Stopped&) {
    row = {};
    row.why_not = why_stopped(comparison.asked);
  }
  row.planner = name;
  return row;
}

}  // namespace

const bounds::Bound& time_bound(const CompiledExperiment& c, bounds::BoundCache& cache) {
  const Experiment& e = c.experiment;
  const bool trains = e.schedule.def->trains, flushes = trains && e.weights.policy->name == "flush";
  return cache.best({.costs = *e.costs,
                     .devices = devices_to_use(e.plan, *e.cluster),
                     .micro_batch = c.plan.mini_batch / e.run.micro_batches,
                     .micro_batches = e.run.micro_batches,
                     .trains = trains,
                     .split_backward = splits_backward(c.schedule)},
                    bounds::kind_of(c.plan, flushes));
}

PlanTable compare_plans(const Experiment& configured, const PlanTableOptions& asked, PlansByPlanner* plans) {
  if (get_from(backends::catalog(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  const std::vector<std::string> names = names_of(asked.planners, std::string(configured.plan.planner->name));
  PlanTable table;
  table.title = configured.title.empty() ? "(untitled)" : configured.title;
  table.model = configured.model->name;
  table.cluster = configured.cluster->name;
  table.reserve = reserve_line(*configured.cluster);
  table.schedule = schedule_title(configured.schedule);
  table.micro_batches = configured.run.micro_batches;
  PlanComparison comparison{configured, asked, own_plan(configured, asked), 0, {}, Shortest(asked.replay), {}};
  const PlannedExperiment* configured_plan = comparison.configured_plan.get();
  table.notes = configured_plan ? remarks(*configured_plan) : suspicious_units(*configured.cluster);
  comparison.devices = needs_stages(names, configured) ? used_devices(configured, configured_plan) : 0;
  Activity activity("comparing planners");
  activity.count(0, "planners", std::ssize(names));
  for (const std::string& name : names) {
    table.rows.push_back(row_of(name, comparison));
    activity.count_one();
  }
  if (asked.replay > 0) {
    table.replay.backend = kReplayBackend;
    keep_replays(table.rows, asked.replay, table.replay, [](const PlanRow& r) { return r.period; });
  }
  if (!configured.budget.empty())
    for (PlanRow& row : table.rows)
      if (row.ran())
        row.economics = economics(configured.budget, row.devices_of_type, row.tokens / known_period(row).value);
  sort_rows(table);
  if (plans) *plans = std::move(comparison.plans);
  return table;
}

}  // namespace stagecraft
