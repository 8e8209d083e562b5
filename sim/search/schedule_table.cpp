// For `stagecraft compare --schedules` and `stagecraft serve`: simulates the schedules that were asked for on one
// scenario, each as a row of a table.

#include "sim/search/schedule_table.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/places.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/experiment/stages_of_schedule.hpp"
#include "sim/plan/plan_words.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/result/bottleneck.hpp"
#include "sim/result/metrics.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/search/replay.hpp"
#include "sim/search/safe_streams.hpp"

namespace stagecraft {
namespace {

/// What all rows have in common.
struct Frame {
  const ScheduleTableOptions& asked;
  const PlannedExperiment configured;  ///< The experiment as it stands. Its order of work need not fit into memory.
  int ranks = 0;                       ///< Number of devices without replicas.
  int iterations = 0;
  Shortest shortest;  ///< The rows to be simulated again.
  /// Rows that do not go with the scenario's weights policy, by the policy that they have instead.
  std::map<std::string, std::vector<std::string>> other_weights = {};
};

Frame frame_of(const Experiment& configured, const ScheduleTableOptions& asked) {
  Frame f{asked, plan_experiment(configured), 0, 0, Shortest(asked.replay)};
  f.ranks = pipeline_ranks(f.configured.plan);
  const int micro_batches = configured.run.micro_batches;
  const int through = (f.configured.plan.stage_count() + micro_batches - 1) / micro_batches;
  f.iterations = std::max({configured.run.lowering.iterations, kFewestIterations, kFewestIterations - 1 + through});
  return f;
}

int chunks_for(const ScheduleDef& def, const Frame& f) {
  return stages_on_rank({def.placement, def.chunks, def.turn}, f.configured.plan.different_stages() / f.ranks);
}

/// The planner cuts the model into any number of stages.
bool has_stages(const Frame& f) { return f.configured.experiment.plan.stages.has_value(); }

config::Member option(const char* key, std::string value) {
  return {key, {}, config::Value::scalar(std::move(value), {})};
}

/// Sequences come in the same slices with each schedule that goes over slices.
std::vector<config::Member> slice_options(const ScheduleDef& def, const ScheduleSpec& configured) {
  std::vector<config::Member> options;
  for (const char* name : {"slices", "cut", "exchange"})
    if (const config::Value* given = configured.options->find(name); given && def.fields && def.fields->find(name))
      options.push_back(option(name, given->text));
  return options;
}

ScheduleSpec schedule_for(const ScheduleDef& def, const std::string& placement, const Frame& f) {
  if (placement.empty()) {
    std::vector<config::Member> options = slice_options(def, f.configured.experiment.schedule);
    if (has_stages(f) && def.fields && def.fields->find("chunks"))
      options.push_back(option("chunks", fmt::format("{}", chunks_for(def, f))));
    return schedule_spec(def, std::move(options));
  }
  if (!has_stages(f)) return schedule_spec(def);
  const ScheduleSpec& configured = f.configured.experiment.schedule;
  std::vector<config::Member> options;
  if (&def == configured.def) options = options_without_placement(configured);
  options.push_back(option("placement", placement));
  options.push_back(option("chunks", "2"));
  return schedule_spec(def, std::move(options));
}

/// A plan that is written out stays as it is. Schedules with scores on all ranks get the plan that divides them.
PlanSpec plan_for(const ScheduleDef& def, const std::string& placement, const Frame& f) {
  PlanSpec plan = f.configured.experiment.plan;
  if (!has_stages(f)) return plan;
  const bool both_ways = placement == to_text(Placement::Bidirectional);
  const int chunks = placement.empty() ? chunks_for(def, f) : both_ways ? 1 : 2;
  plan.stages = f.ranks * chunks;
  plan.placement.reset();
  plan.divides_vocabulary = def.vocabulary != VocabularyPasses::None;
  return plan;
}

void check_backend(const std::string& name) {
  const BackendDef& def = get_from(backends::catalog(), "backend", name);
  if (def.clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", name),
                     "--backend ideal, or simgrid");
  if (const std::string why = def.why_not(); !why.empty()) throw BackendError(name + ": " + why);
}

bool only_about_weights(const InputError& e) {
  return std::all_of(e.problems().begin(), e.problems().end(), [](const Diagnostic& d) { return d.code == "weights"; });
}

Experiment experiment_with(const ScheduleDef& def, const std::string& placement, const Frame& f) {
  Experiment e = variant_of(f.configured.experiment);
  e.run.lowering.iterations = f.iterations;
  if (&def == e.schedule.def && placement.empty()) return e;
  const ScheduleSpec schedule = schedule_for(def, placement, f);
  e.plan = plan_for(def, placement, f);
  try {
    return with_order(e, schedule, e.weights);
  } catch (const InputError& problem) {
    if (!only_about_weights(problem)) throw;
    return with_order(e, schedule, weights_spec("auto"));
  }
}

/// The scenario with an order of the user, on the same ranks: with as many stages as the order has.
Experiment experiment_with(const OwnOrder& given, const Frame& f) {
  Experiment e = variant_of(f.configured.experiment);
  e.run.lowering.iterations = f.iterations;
  const OrderShape shape = shape_of(given);
  if (has_stages(f) && shape.stages % f.ranks == 0) {
    e.plan.stages = shape.stages;
    e.plan.placement.reset();
    if (shape.turns && shape.ranks == f.ranks) e.plan.placement = Placement::V;
  }
  return with_order(e, schedule_of(given), weights_spec("auto"));
}

/// An update makes version u + 1 from version u, so gradients from version v are u - v updates old.
int staleness(const Program& program) {
  int max_staleness = 0;
  for (const Instruction& i : program.instructions)
    if (i.kind == InstructionKind::Forward) max_staleness = std::max(max_staleness, program.update_of(i) - i.version());
  return max_staleness;
}

Seconds time_of(const Frame& f, Seconds makespan, Seconds period) {
  return f.asked.by == SortKey::Time ? makespan : period;
}

ScheduleRow measured(ScheduleRow row, const Experiment& experiment, Frame& f) {
  CompiledExperiment c = compile(experiment);
  Outcome o = run(c, f.asked.backend);
  row.plan_words = plan_words(c.plan);
  measure_row(row, c, o);
  const RunView view = view_of(c, o);
  row.bubble = metric_value("bubble", view);
  row.steady_bubble = metric_value("steady_bubble", view);
  row.activations = static_cast<int>(metric_value("peak_activations", view));
  row.traffic = Bytes{metric_value("traffic_bytes", view)};
  row.safe = safe_streams(c.schedule, c.plan, c.program.iterations);
  row.staleness = staleness(c.program);
  row.bottleneck = bottleneck_text(o.report, c.cluster());
  row.search = c.schedule.search;
  for (const DeviceId d : o.report.devices.ids()) {
    const MemoryPeak& m = o.report.devices[d].memory;
    if (row.fullest.empty() && m.total == row.memory) row.fullest = c.cluster().devices[d].name;
  }
  if (!f.asked.keep) o.timeline = {};
  std::optional<Timeline> contended;
  if (f.shortest.takes(time_of(f, row.makespan, row.period)))
    row.replayed = contended_result(c, f.asked.keep ? &contended : nullptr);
  if (f.asked.keep) row.drawing = {std::move(c.program), std::move(o.timeline), std::move(contended)};
  return row;
}

/// `make`: the scenario with the schedule of the row.
ScheduleRow row_of(const std::string& name, const std::function<Experiment()>& make, Frame& f) {
  ScheduleRow row;
  row.schedule = name;
  try {
    const Experiment experiment = make();
    row = measured(row, experiment, f);
    if (experiment.weights.automatic && !f.configured.experiment.weights.automatic)
      f.other_weights[experiment.weights.name()].push_back(row.schedule);
  } catch (const InputError& e) {
    row.why_not = e.problems().front().message;
  } catch (const Infeasible& e) {
    row.why_not = e.problem().message;
  } catch (const BackendError& e) {
    row.why_not = e.what();
  }
  return row;
}

/// `placement`: of a search, which goes with any.
ScheduleRow row_of(const std::string& name, const std::string& placement, Frame& f) {
  const auto make = [&] { return experiment_with(get_from(schedules::catalog(), "schedule", name), placement, f); };
  if (name == "csv") return row_of(schedule_title(f.configured.experiment.schedule), make, f);
  return row_of(placement.empty() ? name : fmt::format("{} {}", name, placement), make, f);
}

/// Which rows have another weights policy than the scenario.
std::vector<std::string> weights_notes(const Frame& f) {
  std::vector<std::string> notes;
  for (const auto& [policy, rows] : f.other_weights)
    notes.push_back(fmt::format("the weights policy '{}' of the scenario does not go with {}: compared with '{}'",
                                f.configured.experiment.weights.name(), join(rows), policy));
  return notes;
}

}  // namespace

std::vector<std::string> parse_schedules(const std::string& words, const Experiment& experiment) {
  const auto readable = [&](const ScheduleDef& def) {
    return def.name != "csv" || experiment.schedule.def->name == "csv";
  };
  std::vector<std::string> names;
  if (words == "all") {
    for (const ScheduleDef* def : schedules::catalog())
      if (def->trains && readable(*def)) names.emplace_back(def->name);
    return names;
  }
  for (const std::string& word : split(words, ',')) {
    const std::string name(trim(word));
    if (is_order_file(name)) {
      names.push_back(name);
      continue;
    }
    const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
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

ScheduleTable compare_schedules(const Experiment& configured, const ScheduleTableOptions& asked) {
  check_backend(asked.backend);
  std::vector<OwnOrder> orders = asked.orders;
  std::vector<std::string> names;
  if (!asked.schedules.empty() || orders.empty()) names = parse_schedules(asked.schedules, configured);
  for (const std::string& name : names)
    if (is_order_file(name)) orders.push_back(own_order(name));
  std::erase_if(names, is_order_file);
  Frame f = frame_of(configured, asked);
  ScheduleTable table;
  table.title = configured.title.empty() ? "(untitled)" : configured.title;
  table.model = configured.model->name;
  table.cluster = *configured.cluster;
  table.backend = asked.backend;
  table.notes = remarks(f.configured);
  table.configured = schedule_title(configured.schedule);
  table.micro_batches = configured.run.micro_batches;
  table.iterations = f.iterations;
  if (has_stages(f)) table.stages = f.configured.plan.different_stages();
  table.devices = static_cast<int>(devices_of(f.configured.plan).size());
  table.plan = plan_line(f.configured.plan, tokens_of_sample(*configured.model));
  Activity activity("comparing schedules");
  activity.count(0, "schedules", std::ssize(names));
  std::size_t compared = 0;
  try {
    for (; compared < names.size(); ++compared) {
      const std::string& name = names[compared];
      stop_point();
      table.rows.push_back(row_of(name, "", f));
      if (name == "synthesised" && has_stages(f))
        for (const char* placement : {"loop", "v", "bidirectional"}) table.rows.push_back(row_of(name, placement, f));
      activity.count_one();
    }
  } catch (const Stopped&) {
    if (table.rows.empty()) throw;
    table.not_compared.assign(names.begin() + static_cast<std::ptrdiff_t>(compared), names.end());
    for (const OwnOrder& order : orders) table.not_compared.push_back(order.name);
    orders.clear();
  }
  for (const OwnOrder& order : orders)
    table.rows.push_back(row_of(
        order.name, [&] { return experiment_with(order, f); }, f));
  for (std::string& note : weights_notes(f)) table.notes.push_back(std::move(note));
  if (asked.replay > 0) {
    table.replay.backend = kReplayBackend;
    keep_replays(table.rows, asked.replay, table.replay,
                 [&](const ScheduleRow& r) { return time_of(f, r.makespan, r.period); });
  }
  return table;
}

}  // namespace stagecraft
