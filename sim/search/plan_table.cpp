#include "sim/search/plan_table.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/plan/bounds.hpp"
#include "sim/plan/planner.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/search/replay.hpp"

namespace stagecraft {
namespace {

constexpr int kFewestIterations = 5;

/// The planners that `words` names; "all" means every planner that searches, and the scenario's own.
std::vector<std::string> names_of(const std::string& words, const std::string& own) {
  std::vector<std::string> names;
  if (words == "all") {
    for (const PlannerDef* def : planners::all())
      if (def->name != "explicit" || own == "explicit") names.emplace_back(def->name);
    return names;
  }
  for (const std::string& word : split(words, ',')) {
    const std::string name(get_from(planners::all(), "planner", std::string(trim(word))).name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Devices of the experiment's own plan, or all if it has none.
int used_devices(const Experiment& own) {
  std::set<DeviceId> used;
  try {
    for (const Stage& stage : plan_experiment(own).plan.stages)
      used.insert(stage.devices().begin(), stage.devices().end());
    return static_cast<int>(used.size());
  } catch (const Infeasible&) {
  } catch (const InputError&) {
  }
  return static_cast<int>(own.cluster->devices.size());
}

/// Whether any planner needs a number of stages that the experiment's plan does not have.
bool needs_stages(const std::vector<std::string>& names, const Experiment& own) {
  if (own.plan.stages) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const config::Field* field = get_from(planners::all(), "planner", name).fields->find("stages");
    return name != "explicit" && name != own.plan.planner->name && field && field->required;
  });
}

/// The devices that planners may use: those that the plan of the experiment names, or all.
std::vector<DeviceId> devices_to_use(const PlanSpec& plan, const Cluster& cluster) {
  if (plan.devices) return *plan.devices;
  std::vector<DeviceId> devices;
  for (const DeviceId d : cluster.devices.ids()) devices.push_back(d);
  return devices;
}

bool splits_backward(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const std::vector<Op>& ops) {
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::InputGradient; });
  });
}

/// What no plan of such micro-batches beats on these devices; nothing if one of them cannot run some layer.
void set_least(const CompiledExperiment& c, bounds::Known& known, PlanRow& row) {
  const Experiment& e = c.experiment;
  const bool trains = e.schedule.def->trains;
  const bounds::Question question{
      *e.costs, devices_to_use(e.plan, *e.cluster), c.plan.mini_batch / e.run.micro_batches, e.run.micro_batches,
      trains,   splits_backward(c.schedule)};
  try {
    const bool flushes = trains && e.weights.policy->name == "flush";
    const bounds::Bound least = known.best(question, bounds::kind_of(c.plan, flushes));
    row.least = least.each;
    row.least_reason = least.reason;
  } catch (const InputError&) {
    row.least_reason = "some layer has no times on one of the devices";
  }
}

/// The experiment with the plan of another planner, and with LayerPipe's schedule for its tasks.
Experiment with_planner(const std::string& name, const Experiment& own, int own_devices) {
  const PlannerDef& def = get_from(planners::all(), "planner", name);
  Experiment e = variant_of(own);
  e.run.lowering.iterations = std::max(e.run.lowering.iterations, kFewestIterations);
  if (&def != own.plan.planner) e.plan = plan_spec_for(def, own.plan, own_devices, *own.cluster);
  if (name == "layerpipe" && own.schedule.def->name != name)
    e = with_order(e, schedule_spec(get_from(schedules::all(), "schedule", name)), e.weights);
  return e;
}

PlanRow row_of(const std::string& name, const Experiment& own, int own_devices, const PlanTableOptions& asked,
               bounds::Known& known, Shortest& shortest) {
  PlanRow row;
  row.planner = name;
  try {
    const CompiledExperiment c = compile(with_planner(name, own, own_devices));
    Outcome o = run(c, asked.backend);
    std::set<DeviceId> devices;
    for (const Stage& stage : c.plan.stages) devices.insert(stage.devices().begin(), stage.devices().end());
    row.stages = c.plan.different_stages();
    row.devices = static_cast<int>(devices.size());
    row.predicted = c.report.predicted;
    row.lower_bound = c.report.lower_bound;
    row.bound_reason = c.report.bound_reason;
    row.states = c.report.states;
    set_least(c, known, row);
    row.seconds = c.planning.value;
    row.makespan = o.report.makespan;
    row.period = o.report.period;
    row.each = o.report.period / static_cast<double>(c.experiment.run.micro_batches);
    row.memory = fullest_device_memory(o.report, c.cluster());
    row.schedule = c.experiment.schedule.name();
    if (asked.show) row.plan = to_text(c.plan);
    o.timeline = {};
    if (shortest.takes(row.period)) row.replayed = contended_result(c);
  } catch (const InputError& e) {
    row.why_not = e.problems().front().message;
  } catch (const Infeasible& e) {
    row.why_not = e.problem().message.substr(0, e.problem().message.find(": "));
  } catch (const BackendError& e) {
    row.why_not = e.what();
  }
  return row;
}

}  // namespace

PlanTable compare_plans(const Experiment& own, const PlanTableOptions& asked,
                        const std::function<void(const std::string&)>& progress) {
  if (get_from(backends::all(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  const std::vector<std::string> names = names_of(asked.planners, std::string(own.plan.planner->name));
  PlanTable table;
  table.title = own.title.empty() ? "(untitled)" : own.title;
  table.model = own.model->name;
  table.cluster = own.cluster->name;
  table.schedule = own.schedule.name();
  table.micro_batches = own.run.micro_batches;
  table.notes = remarks(own);
  const int devices = needs_stages(names, own) ? used_devices(own) : 0;
  bounds::Known known;
  Shortest shortest(asked.replay);
  for (const std::string& name : names) {
    progress(fmt::format("{} ({} of {})", name, table.rows.size() + 1, names.size()));
    table.rows.push_back(row_of(name, own, devices, asked, known, shortest));
  }
  if (asked.replay > 0) {
    table.replay.backend = kReplayBackend;
    keep_replays(table.rows, asked.replay, table.replay, [](const PlanRow& r) { return r.period; });
  }
  sort_rows(table);
  return table;
}

}  // namespace stagecraft
