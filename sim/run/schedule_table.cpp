#include "sim/run/schedule_table.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/planner.hpp"
#include "sim/run/places.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/replay.hpp"
#include "sim/run/run.hpp"
#include "sim/run/safe_streams.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {
namespace {

constexpr int kFewestIterations = 5;

/// The scenario as it stands: what all rows have in common.
struct Frame {
  ScheduleTableOptions asked;
  Scenario own;
  Plan plan;
  Cluster cluster;
  std::string model;
  int ranks = 0;  ///< Devices, replicas counted once.
  int iterations = 0;
  Shortest shortest{0};  ///< To be played again.
};

/// What prepare() begins with. The order of work of the scenario need not fit into the memory.
void lay_out(Frame& f) {
  const config::Value& tree = f.own.tree;
  const ModelGraph model = for_part(tree, "model", [](const config::Value& part) { return build_model(part); });
  f.model = model.name;
  f.cluster = for_part(tree, "cluster", [](const config::Value& part) { return build_cluster(part); });
  const CostTable costs(model, f.cluster, f.own.profile ? &*f.own.profile : nullptr);
  const Placing placing =
      placing_of(get_from(schedules::all(), "schedule", f.own.schedule), &tree.at("run").at("schedule"));
  f.plan = for_part(tree, "plan", [&](const config::Value& part) {
    return get_from(planners::all(), "planner", part.at("planner").text)
        .plan({model, f.cluster, costs, part, f.own.micro_batches, placing})
        .plan;
  });
  std::set<DeviceId> first;
  for (const Stage& stage : f.plan.stages) first.insert(stage.devices.front());
  f.ranks = static_cast<int>(first.size());
  const int through = (f.plan.stage_count() + f.own.micro_batches - 1) / f.own.micro_batches;
  f.iterations = std::max({f.own.lowering.iterations, kFewestIterations, kFewestIterations - 1 + through});
}

/// Stages on each device: as the scenario has them, or the fewest that are more than one.
int chunks_for(const ScheduleDef& def, const Frame& f) {
  const ChunkRange& range = def.chunks;
  if (range.most == 1 || def.placement == Placement::Bidirectional) return 1;
  const int own = f.plan.different_stages() / f.ranks;
  if (own > 1 && range.has(own)) return own;
  return range.least > 1 ? range.least : range.least + range.step;
}

/// The planner cuts the model into any number of stages.
bool has_stages(const Frame& f) {
  const config::Value* stages = f.own.tree.at("plan").find("stages");
  return stages && stages->is_scalar();
}

/// What the scenario says to its own schedule, but where the stages lie.
std::string other_options(const Frame& f, const ScheduleDef& def) {
  std::string text;
  if (def.name != f.own.schedule) return text;
  for (const config::Member& m : f.own.tree.at("run").at("schedule").members)
    if (m.value.origin.empty() && m.key != "name" && m.key != "placement" && m.key != "chunks")
      text += fmt::format(", {}: {}", m.key, config::to_json(m.value));
  return text;
}

/// What another schedule changes in the scenario. A plan that is written out stays as it is.
std::vector<std::string> changes(const ScheduleDef& def, const std::string& placement, const Frame& f) {
  if (!has_stages(f)) return {fmt::format("run.schedule={}", def.name)};
  if (!placement.empty()) {
    const bool both_ways = placement == to_text(Placement::Bidirectional);
    return {fmt::format("run.schedule={{name: {}, placement: {}, chunks: 2{}}}", def.name, placement,
                        other_options(f, def)),
            fmt::format("plan.stages={}", both_ways ? f.ranks : 2 * f.ranks), "plan.placement=auto"};
  }
  const int chunks = chunks_for(def, f);
  const bool asks = def.fields && def.fields->find("chunks");
  return {asks ? fmt::format("run.schedule={{name: {}, chunks: {}}}", def.name, chunks)
               : fmt::format("run.schedule={}", def.name),
          fmt::format("plan.stages={}", f.ranks * chunks), "plan.placement=auto"};
}

void check_backend(const std::string& name) {
  const BackendDef& def = get_from(backends::all(), "backend", name);
  if (def.clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", name),
                     "--backend ideal, or simgrid");
  if (const std::string why = def.why_not(); !why.empty()) throw BackendError(name + ": " + why);
}

bool only_about_weights(const InputError& e) {
  return std::all_of(e.problems().begin(), e.problems().end(), [](const Diagnostic& d) { return d.code == "weights"; });
}

Scenario scenario_with(const ScheduleDef& def, const std::string& placement, const Frame& f) {
  std::vector<std::string> sets = f.asked.sets;
  sets.push_back(fmt::format("run.iterations={}", f.iterations));
  if (def.name == f.own.schedule && placement.empty()) return load_scenario(f.asked.file, sets);
  for (std::string& set : changes(def, placement, f)) sets.push_back(std::move(set));
  try {
    return load_scenario(f.asked.file, sets);
  } catch (const InputError& e) {
    if (!only_about_weights(e)) throw;
    sets.emplace_back("weights=auto");
    return load_scenario(f.asked.file, sets);
  }
}

/// An update makes version u + 1 of version u, so gradients from version v are u - v updates behind.
int staleness(const Program& program) {
  int most = 0;
  for (const Instruction& i : program.instructions)
    if (i.kind == InstructionKind::Forward) most = std::max(most, program.update_of(i) - i.version());
  return most;
}

Bytes traffic(const Program& program) {
  double bytes = 0;
  for (const Transfer& t : program.transfers) bytes += static_cast<double>(program.bytes(t));
  return {bytes / program.iterations};
}

Seconds time_of(const Frame& f, Seconds makespan, Seconds period) {
  return f.asked.by == SortKey::Time ? makespan : period;
}

ScheduleRow measured(ScheduleRow row, const Scenario& scenario, Frame& f) {
  Prepared p = prepare(scenario);
  Outcome o = run(scenario, p, f.asked.backend);
  static_cast<void>(fullest_of(o.report, p.cluster));
  for (std::size_t d = 0; d < o.report.devices.size(); ++d) {
    const MemoryPeak& m = o.report.devices[d].memory;
    if (m.total > row.memory) row.memory = m.total, row.fullest = p.cluster.devices[d].name;
    row.activations = std::max(row.activations, m.activations);
  }
  row.stages = p.plan.different_stages();
  row.makespan = o.report.makespan;
  row.period = o.report.period;
  row.bubble = o.report.bubble;
  row.steady_bubble = o.report.steady_bubble;
  row.traffic = traffic(p.program);
  row.safe = safe_streams(p.schedule, p.plan, p.program.iterations);
  row.staleness = staleness(p.program);
  row.search = p.schedule.search;
  row.unexchanged = unexchanged_gradients(scenario, p);
  if (!f.asked.keep) o.timeline = {};
  if (f.shortest.takes(time_of(f, row.makespan, row.period))) row.replayed = replayed(scenario, p);
  if (f.asked.keep) row.kept = {std::move(p.program), std::move(o.timeline)};
  return row;
}

/// `placement`: of a search, which goes with any.
ScheduleRow row_of(const std::string& name, const std::string& placement, Frame& f) {
  ScheduleRow row;
  row.name = placement.empty() ? name : fmt::format("{} {}", name, placement);
  try {
    return measured(row, scenario_with(get_from(schedules::all(), "schedule", name), placement, f), f);
  } catch (const InputError& e) {
    row.why_not = e.problems().front().message;
  } catch (const Infeasible& e) {
    row.why_not = e.problem().message.substr(0, e.problem().message.find(": "));  // What follows is a list of details.
  } catch (const BackendError& e) {
    row.why_not = e.what();
  }
  return row;
}

}  // namespace

std::vector<std::string> parse_schedules(const std::string& words, const Scenario& scenario) {
  const auto readable = [&](const ScheduleDef& def) { return def.name != "csv" || scenario.schedule == "csv"; };
  std::vector<std::string> names;
  if (words == "all") {
    for (const ScheduleDef* def : schedules::all())
      if (def->trains && readable(*def)) names.emplace_back(def->name);
    return names;
  }
  for (const std::string& word : split(words, ',')) {
    const std::string name(trim(word));
    const ScheduleDef& def = get_from(schedules::all(), "schedule", name);
    if (def.tasks)
      throw InputError(fmt::format("the schedule '{}' needs a plan of tasks, so it cannot be compared with others on "
                                   "the stages of one plan",
                                   name),
                       "stagecraft plan SCENARIO --planner balanced,layerpipe compares the plans");
    if (!def.trains)
      throw InputError(fmt::format("the schedule '{}' does not train, so it cannot be compared with others", name),
                       "stagecraft run shows what it takes");
    if (!readable(def))
      throw InputError("the schedule 'csv' is an order from a file, and the scenario names none",
                       "take a scenario with run.schedule: {csv: order.csv}");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

ScheduleTable compare_schedules(const ScheduleTableOptions& asked,
                                const std::function<void(const std::string&)>& progress) {
  check_backend(asked.backend);
  Frame f;
  f.asked = asked;
  f.shortest = Shortest(asked.replay);
  f.own = load_scenario(asked.file, asked.sets);
  const std::vector<std::string> names = parse_schedules(asked.schedules, f.own);
  lay_out(f);
  ScheduleTable table;
  table.title = f.own.title.empty() ? "(untitled)" : f.own.title;
  table.model = f.model;
  table.backend = asked.backend;
  table.notes = remarks(f.own);
  table.own = f.own.schedule;
  table.micro_batches = f.own.micro_batches;
  table.iterations = f.iterations;
  std::set<DeviceId> devices;
  for (const Stage& stage : f.plan.stages) devices.insert(stage.devices.begin(), stage.devices.end());
  table.devices = static_cast<int>(devices.size());
  for (const std::string& name : names) {
    progress(fmt::format("{} ({} of {})", name, table.rows.size() + 1, names.size()));
    table.rows.push_back(row_of(name, "", f));
    if (name == "synthesised" && has_stages(f))
      for (const char* placement : {"loop", "v", "bidirectional"}) table.rows.push_back(row_of(name, placement, f));
  }
  table.cluster = std::move(f.cluster);
  if (asked.replay > 0) {
    table.replay.backend = kReplayBackend;
    keep_replays(table.rows, asked.replay, table.replay,
                 [&](const ScheduleRow& r) { return time_of(f, r.makespan, r.period); });
  }
  return table;
}

}  // namespace stagecraft
