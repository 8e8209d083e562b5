#include "sim/run/plan_table.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/plan/bounds.hpp"
#include "sim/plan/planner.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/replay.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {
namespace {

constexpr int kFewestIterations = 5;

/// All are those that search, and the scenario's own.
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

/// The plan of another planner: what the scenario's own says, where that one has the field too.
std::string plan_for(const PlannerDef& def, const Scenario& own, int devices) {
  const config::Value& plan = own.tree.at("plan");
  std::string text = fmt::format("{{planner: {}", def.name);
  bool stages = false;
  for (const config::Member& m : plan.members) {
    const bool written = m.value.origin.empty() && !(m.key == "stages" && !m.value.is_scalar());
    if (m.key == "planner" || !written || !def.fields->find(m.key)) continue;
    stages |= m.key == "stages";
    text += fmt::format(", {}: {}", m.key, config::to_json(m.value));
  }
  if (def.fields->find("stages") && def.fields->find("stages")->required && !stages && def.name != "explicit")
    text += fmt::format(", stages: {}", devices);
  return text + "}";
}

/// Of the scenario's own plan, or all where it has none.
int used_devices(const Scenario& own) {
  std::set<DeviceId> used;
  try {
    for (const Stage& stage : lay_out(own).plan.stages) used.insert(stage.devices.begin(), stage.devices.end());
    return static_cast<int>(used.size());
  } catch (const Infeasible&) {
  } catch (const InputError&) {
  }
  return static_cast<int>(build_cluster(own.tree.at("cluster")).devices.size());
}

/// `stages` of planners that have to be told, where the scenario's plan does not say.
bool needs_stages(const std::vector<std::string>& names, const Scenario& own) {
  const config::Value& plan = own.tree.at("plan");
  const config::Value* given = plan.find("stages");
  if (given && given->is_scalar()) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const config::Field* field = get_from(planners::all(), "planner", name).fields->find("stages");
    return name != "explicit" && name != plan.at("planner").text && field && field->required;
  });
}

/// The devices that planners may use: those that the scenario's own plan names, or all.
std::vector<DeviceId> devices_to_use(const config::Value& plan, const Cluster& cluster) {
  std::vector<DeviceId> devices;
  config::Problems problems;
  if (const config::Value* names = plan.find("devices")) {
    devices = read_devices(*names, cluster, "plan.devices", problems);
    problems.throw_if_any();
    return devices;
  }
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) devices.push_back(DeviceId{static_cast<std::int64_t>(d)});
  return devices;
}

bool splits_backward(const Schedule& schedule) {
  return std::any_of(schedule.devices.begin(), schedule.devices.end(), [](const std::vector<Op>& ops) {
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::InputGradient; });
  });
}

/// What no plan of such micro-batches beats on these devices; nothing where one of them cannot run some layer.
void set_least(const Scenario& scenario, const Prepared& p, bounds::Known& known, PlanRow& row) {
  const CostTable costs(p.model, p.cluster, scenario.profile ? &*scenario.profile : nullptr);
  const bool trains = get_from(schedules::all(), "schedule", scenario.schedule).trains;
  const bounds::Question question{costs,
                                  devices_to_use(scenario.tree.at("plan"), p.cluster),
                                  p.plan.mini_batch / scenario.micro_batches,
                                  scenario.micro_batches,
                                  trains,
                                  splits_backward(p.schedule)};
  try {
    const bounds::Bound least = known.best(question, bounds::kind_of(p.plan, trains && scenario.weights == "flush"));
    row.least = least.each;
    row.least_reason = least.reason;
  } catch (const InputError&) {
    row.least_reason = "some layer has no times on one of the devices";
  }
}

PlanRow row_of(const std::string& name, const Scenario& own, int own_devices, const PlanTableOptions& asked,
               bounds::Known& known, Shortest& shortest) {
  PlanRow row;
  row.planner = name;
  try {
    const PlannerDef& def = get_from(planners::all(), "planner", name);
    std::vector<std::string> sets = asked.sets;
    sets.push_back(fmt::format("run.iterations={}", std::max(own.lowering.iterations, kFewestIterations)));
    if (own.tree.at("plan").at("planner").text != name) sets.push_back("plan=" + plan_for(def, own, own_devices));
    if (name == "layerpipe" && own.schedule != name) sets.push_back("run.schedule=layerpipe");
    const Scenario scenario = load_scenario(asked.file, sets);
    const Prepared p = prepare(scenario);
    Outcome o = run(scenario, p, asked.backend);
    std::set<DeviceId> devices;
    for (const Stage& stage : p.plan.stages) devices.insert(stage.devices.begin(), stage.devices.end());
    row.stages = p.plan.different_stages();
    row.devices = static_cast<int>(devices.size());
    row.predicted = p.planned.predicted;
    row.lower_bound = p.planned.lower_bound;
    row.bound_reason = p.planned.bound_reason;
    row.states = p.planned.states;
    set_least(scenario, p, known, row);
    row.seconds = p.planning.value;
    row.makespan = o.report.makespan;
    row.period = o.report.period;
    row.each = o.report.period / static_cast<double>(scenario.micro_batches);
    row.memory = fullest_of(o.report, p.cluster);
    row.schedule = scenario.schedule;
    if (asked.show) row.plan = to_text(p.plan);
    o.timeline = {};
    if (shortest.takes(row.period)) row.replayed = replayed(scenario, p);
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

PlanTable compare_plans(const PlanTableOptions& asked, const std::function<void(const std::string&)>& progress) {
  if (get_from(backends::all(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  const Scenario own = load_scenario(asked.file, asked.sets);
  const std::vector<std::string> names = names_of(asked.planners, own.tree.at("plan").at("planner").text);
  PlanTable table;
  table.title = own.title.empty() ? "(untitled)" : own.title;
  table.model = build_model(own.tree.at("model")).name;
  table.cluster = build_cluster(own.tree.at("cluster")).name;
  table.schedule = own.schedule;
  table.micro_batches = own.micro_batches;
  table.notes = remarks(own);
  static_cast<void>(devices_to_use(own.tree.at("plan"), build_cluster(own.tree.at("cluster"))));  // Said once, for all.
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
