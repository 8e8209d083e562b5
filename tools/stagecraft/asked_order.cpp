// Builds the order of work that `schedule` is asked for, by the name of a schedule or from a CSV file, with its checks
// and costs, and times it without a scenario: equal stages, a delay for each message, the backend `ideal`. `export` and
// `serve` take parts of it.

#include "tools/stagecraft/asked_order.hpp"

#include <utility>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/program/check.hpp"
#include "sim/program/lower.hpp"
#include "sim/result/pipeline_ranks.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/checks.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kMostStages = 1 << 20;

/// Words of `plan.recompute`.
bool recomputes(const Arguments& a, const ScheduleDef& def) {
  if (!a.has("recompute")) return false;
  const std::string word = a.text("recompute");
  if (word == "selective")
    throw InputError("--recompute selective makes the inside of attentions again, and there are no layers here",
                     "--recompute full, or stagecraft run SCENARIO --set plan.recompute=selective");
  if (word != "full" && word != "none")
    throw InputError(fmt::format("--recompute: '{}' is not known here", word), "write full or none");
  if (!def.trains)
    throw InputError(fmt::format("--recompute: the schedule '{}' has no backward to recompute for", def.name));
  return word == "full";
}

}  // namespace

int NamedSchedule::slices() const {
  const config::Value* given = options ? options->find("slices") : nullptr;
  return given ? config::as_int(*given) : 1;
}

ScheduleInput NamedSchedule::input(const StageCosts& costs, int iterations, const Cluster* cluster) const {
  return {.plan = plan,
          .costs = costs,
          .iterations = iterations,
          .options = read_options(*def, options ? &*options : nullptr),
          .cluster = cluster};
}

NamedSchedule named_schedule(const Arguments& a, const std::string& name, int iterations, const char* example) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  if (def.name == "csv") throw InputError("the schedule 'csv' is read from a file", "stagecraft schedule --file X.csv");
  if (def.tasks)
    throw InputError(
        fmt::format("the schedule '{}' runs the passes of layers as tasks, and there are no layers here", def.name),
        "stagecraft run SCENARIO, with plan: {planner: layerpipe} and run: {schedule: layerpipe}");
  if (!a.has("ranks") || !a.has("microbatches")) throw InputError("-p RANKS and -m MICROBATCHES are needed", example);
  const int ranks = a.count("ranks", 1, 1 << 16), micro_batches = a.count("microbatches", 1, 1 << 20);
  std::optional<config::Value> options = options_of(def, a.list("set"));
  const PlacementRule placing = placing_of(def, options ? &*options : nullptr);
  const int chunks = a.has("chunks") ? a.count("chunks", 1, 1024) : placing.chunks.min;
  if (ranks > kMostStages / chunks)
    throw InputError(fmt::format("{} with {} each have more than {} stages", pluralize(ranks, "rank"),
                                 pluralize(chunks, "chunk"), kMostStages));
  Plan plan = plan_for(def, placing, ranks, chunks, micro_batches);
  const bool recompute = recomputes(a, def);
  for (Stage& stage : plan.stages) stage.shape.recomputation = recompute ? Recomputation::Full : Recomputation::None;
  check_size(plan, iterations, def.trains);
  return {&def, std::move(options), std::move(plan)};
}

}  // namespace stagecraft::commands

namespace stagecraft {
namespace {

constexpr const char* kExample = "stagecraft schedule 1f1b -p 4 -m 8";

/// Removes the exchange of gradients between two copies of a stage: no option gives its cost, so it takes no time.
Plan without_exchange(Plan plan) {
  for (Stage& stage : plan.stages) stage.twin = {};
  plan.reductions = derive_reductions(plan);
  return plan;
}

void refuse_idle(const Arguments& a, const ScheduleDef& def) {
  if (a.has("slices"))
    throw InputError(fmt::format("--slices is for a file; the schedule '{}' knows its own", def.name),
                     "leave --slices out; seq1f1b has an option for it: -s slices=4");
  if (a.has("torch") && !def.flushes)
    throw InputError(
        fmt::format("--torch: PyTorch drains the pipeline before each update, which the schedule '{}' "
                    "does not",
                    def.name));
  if (def.trains) return;
  for (const char* name : {"torch", "stash", "freed-at-input", "weights"})
    if (a.has(name)) throw InputError(fmt::format("--{}: the schedule '{}' has no backward", name, def.name));
}

/// Checks a schedule by name: all iterations without a flush, because one does not fill the pipeline. Problems of cells
/// become problems of ops, because there is no text whose lines they could name.
CheckedFile checked_name(const Arguments& a, const AskedOrder& asked, bool flushes, const FileCheckOptions& options) {
  const Schedule order = without_updates(flushes ? asked.one : asked.all_iterations);
  CheckedFile checked = checked_order(a, to_csv(order), asked.name, options);
  for (CellProblem& cell : checked.cells) {
    ScheduleProblem& problem = checked.problems.emplace_back(std::move(cell.problem));
    if (const std::string op = fmt::format("'{}': ", problem.op); problem.message.starts_with(op))
      problem.message.erase(0, op.size());
  }
  checked.cells.clear();
  return checked;
}

AskedOrder made_by_name(const Arguments& a, int iterations) {
  const commands::NamedSchedule named = commands::named_schedule(a, a.text("NAME"), iterations, kExample);
  const ScheduleDef& def = *named.def;
  refuse_idle(a, def);
  FileCheckOptions options = check_options(a);
  AskedOrder asked{
      .name = std::string(def.name), .plan = without_exchange(named.plan), .one = {}, .all_iterations = {}};
  const StageCosts costs = uniform_costs(asked.plan, asked_costs(a));
  const Cluster cluster = asked_cluster(a, asked.plan.device_count());
  asked.one = build_schedule(def, named.input(costs, 1, &cluster));
  asked.all_iterations = def.flushes ? complete(asked.one, named.plan, iterations)
                                     : build_schedule(def, named.input(costs, iterations, &cluster));
  asked.weights = def.weights;
  asked.copies = named.plan.stages.front().twin.valid();
  asked.trains = options.trains = def.trains;
  asked.search = asked.one.search;
  options.slices = named.slices();
  if (!def.trains) options.memory.each_stash = 0;
  if (asks_for_checks(a)) asked.checked = checked_name(a, asked, def.flushes, options);
  return asked;
}

AskedOrder read_from_file(const Arguments& a, int iterations) {
  AskedOrder asked{.name = a.text("file"), .plan = {}, .one = {}, .all_iterations = {}, .checked = checked_file(a)};
  if (!asked.checked.good()) return asked;
  asked.plan = asked.checked.plan;
  asked.one = asked.checked.compute.schedule;
  asked.all_iterations = complete(asked.one, asked.plan, iterations);
  return asked;
}

}  // namespace

AskedOrder asked_order(const Arguments& a, int iterations) {
  if (a.has("NAME") && a.has("file"))
    throw InputError(fmt::format("'{}' is a NAME and '{}' a file; give one of them", a.text("NAME"), a.text("file")));
  if (!a.has("NAME") && !a.has("file"))
    throw InputError("give the name of a schedule, or --file X.csv", "stagecraft list schedules shows the names");
  refuse_idle(a);
  return a.has("file") ? read_from_file(a, iterations) : made_by_name(a, iterations);
}

Schedule without_updates(Schedule schedule) {
  for (auto& ops : schedule.ranks) std::erase_if(ops, [](const Op& op) { return op.kind == OpKind::Update; });
  return schedule;
}

/// B is I + W when they are given apart, and the halves are equal when they are not.
StageCost asked_costs(const Arguments& a) {
  StageCost cost;
  cost.forward = {a.number("f")};
  const bool halves = a.has("i") || a.has("w");
  if (halves) {
    if (!a.has("i") || !a.has("w")) throw InputError("--i and --w belong together", "give both halves of the backward");
    cost.input_gradient = {a.number("i")};
    cost.weight_gradient = {a.number("w")};
    cost.backward = a.has("b") ? Seconds{a.number("b")} : cost.input_gradient + cost.weight_gradient;
  } else {
    cost.backward = a.has("b") ? Seconds{a.number("b")} : 2 * cost.forward;
    cost.input_gradient = cost.weight_gradient = cost.backward / 2;
  }
  cost.recompute = a.has("r") ? Seconds{a.number("r")} : cost.forward;
  cost.update = {a.number("u")};
  return cost;
}

Cluster asked_cluster(const Arguments& a, int ranks) { return delay_cluster(Seconds{a.number("comm")}, ranks); }

Cluster delay_cluster(Seconds delay, int ranks) {
  Cluster cluster;
  cluster.name = "delay";
  cluster.types.push_back({.name = "rank"});
  cluster.switches = {"switch"};
  for (int r = 0; r < ranks; ++r) {
    cluster.devices.push_back({fmt::format("rank{}", r), DeviceTypeId{0}, ""});
    cluster.links.push_back(
        {fmt::format("link{}", r), {1}, delay / 2, Duplex::Unshared, {VertexId{r}, VertexId{ranks}}});
  }
  return cluster;
}

namespace {

Program program_of(const AskedOrder& q, const StageCost& cost) {
  const LoweringOptions options{.overlap = true,
                                .rendezvous = false,
                                .streams = StreamModel::None,
                                .fifo_sends = false,
                                .iterations = kTimedIterations};
  throw_if_any(
      validate(q.all_iterations, q.plan, {.iterations = kTimedIterations, .trains = q.trains, .max_problems = 20}),
      q.name);
  Program program = lower(q.all_iterations, q.plan, uniform_costs(q.plan, cost),
                          get_from(weights::catalog(), "weights policy", q.weights).paper, options);
  check_program(program);
  return program;
}

/// The peaks follow from the order alone, because times may be zero.
std::vector<double> peaks_of(const AskedOrder& q, double freed_at_input) {
  Plan plan = q.plan;
  plan.mini_batch *= kTimedIterations;
  const StashModel model{.each_stash = q.trains ? 1.0 : 0.0, .freed_at_input = freed_at_input};
  std::vector<double> peaks;
  for (const StashPeak& peak : stash_peaks(actions_of(q.all_iterations), plan, model)) peaks.push_back(peak.size);
  return peaks;
}

}  // namespace

TimedOrder time_order(const AskedOrder& q, const StageCost& cost, Seconds delay, double freed_at_input) {
  TimedOrder timed;
  timed.program = program_of(q, cost);
  timed.cluster = delay_cluster(delay, timed.program.devices);
  timed.timeline = get_from(backends::catalog(), "backend", "ideal").run(timed.program, timed.cluster, {});
  timed.report = measure(timed.program, timed.timeline, timed.cluster);
  timed.report.ranks = pipeline_ranks(q.plan, timed.program, timed.report, timed.cluster);
  check_finite(timed.report.makespan.value);
  timed.peaks = peaks_of(q, freed_at_input);
  return timed;
}

}  // namespace stagecraft
