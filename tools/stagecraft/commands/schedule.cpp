#include <optional>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/program/check.hpp"
#include "sim/program/lower.hpp"
#include "sim/report/gantt.hpp"
#include "sim/report/json.hpp"
#include "sim/report/report.hpp"
#include "sim/run/limits.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/csv.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/named_schedule.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kIterations = 5;          // The period is T(4) - T(3); the last one keeps the pipeline full.
constexpr std::size_t kMostPeaks = 64;  // Printed one by one.

struct Question {
  std::string name;
  Plan plan;
  Schedule one;  ///< One iteration, as given.
  Schedule all;
  std::string weights = "flush";
  bool trains = true;
};

/// Times in the user's unit; B is I + W when they are given apart, and the halves are equal when they are not.
StageCost costs_of(const Arguments& a) {
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

/// Every rank reaches every other with a pure delay.
Cluster delay_cluster(int ranks, Seconds delay) {
  Cluster cluster;
  cluster.name = "delay";
  cluster.types.push_back({.name = "rank"});
  cluster.switches = {"switch"};
  for (int r = 0; r < ranks; ++r) {
    cluster.devices.push_back({fmt::format("rank{}", r), 0, ""});
    cluster.links.push_back(
        {fmt::format("link{}", r), {1}, delay / 2, Duplex::Unshared, {VertexId{r}, VertexId{ranks}}});
  }
  return cluster;
}

Question from_file(const CheckedFile& f, const std::string& file) {
  throw_if_bad(f, file);
  return {.name = file,
          .plan = f.plan,
          .one = f.compute.schedule,
          .all = complete(f.compute.schedule, f.plan, kIterations)};
}

Question from_catalogue(const Arguments& a) {
  const NamedSchedule named = named_schedule(a, a.text("NAME"), kIterations, "stagecraft schedule 1f1b -p 4 -m 8");
  const ScheduleDef& def = *named.def;
  Question q{.name = std::string(def.name), .plan = named.plan, .one = {}, .all = {}};
  const StageCosts costs = uniform_costs(q.plan, costs_of(a));
  const Cluster cluster = delay_cluster(q.plan.device_count(), {a.number("comm")});
  q.one = build_schedule(def, named.input(costs, 1, &cluster));
  q.all = def.flushes ? complete(q.one, q.plan, kIterations)
                      : build_schedule(def, named.input(costs, kIterations, &cluster));
  q.weights = def.weights;
  q.trains = def.trains;
  return q;
}

/// As PyTorch has it, and as --file reads it.
Schedule without_updates(Schedule schedule) {
  for (auto& ops : schedule.devices) std::erase_if(ops, [](const Op& op) { return op.kind == OpKind::Update; });
  return schedule;
}

int execute(const Arguments& a) {
  const std::string format = a.text("format");
  check_format(format, {"grid", "csv", "json", "gantt"});
  if (a.has("NAME") == a.has("file"))
    throw InputError("give the name of a schedule, or --file X.csv", "stagecraft list schedules shows the names");
  const CheckedFile file = a.has("file") ? checked_file(a) : CheckedFile{};
  if (format == "json" && !file.good()) {
    print(with_findings("{}", file) + "\n");
    return exit_code(file);
  }
  const Question q = a.has("file") ? from_file(file, a.text("file")) : from_catalogue(a);
  if (format == "csv") return print(to_csv(without_updates(q.one))), 0;

  const LoweringOptions options{.overlap = true,
                                .rendezvous = false,
                                .streams = StreamModel::None,
                                .fifo_sends = false,
                                .iterations = kIterations};
  throw_if_any(validate(q.all, q.plan, {.iterations = kIterations, .trains = q.trains, .most = 20}), q.name);
  const Program program = lower(q.all, q.plan, uniform_costs(q.plan, costs_of(a)),
                                get_from(weights::all(), "weights policy", q.weights).paper, options);
  check_program(program);
  const Cluster cluster = delay_cluster(program.devices, {a.number("comm")});
  const Timeline timeline = get_from(backends::all(), "backend", "ideal").run(program, cluster, {});
  const Report report = measure(program, timeline, cluster);
  check_finite(report.makespan.value);
  if (format == "json") {
    const std::string json = schedule_json(q.name, program, report);
    return print((a.has("file") ? with_findings(json, file) : json) + "\n"), 0;
  }

  std::string text = format == "gantt" ? gantt(program, timeline, cluster, 0, 100) : to_grid(q.one);
  text += fmt::format("makespan {}  period {}  bubble {:.4g} ({:.4g} of {})  peak activations",
                      shortest(report.makespan.value), shortest(report.period.value), report.bubble,
                      report.bubble * report.makespan.value, shortest(report.makespan.value));
  for (std::size_t d = 0; d < std::min(report.devices.size(), kMostPeaks); ++d)
    text += fmt::format(" {}", report.devices[d].memory.activations);
  if (report.devices.size() > kMostPeaks) text += fmt::format(" ... and {} more", report.devices.size() - kMostPeaks);
  text += '\n';
  if (q.one.search) text += to_text(*q.one.search, [](Seconds s) { return fmt::format("{:.10g}", s.value); }) + '\n';
  for (const ScheduleProblem& w : file.warnings) text += "warning: " + to_text(w) + '\n';
  return print(text), 0;
}

std::vector<Argument> arguments() {
  using Kind = Argument::Kind;
  std::vector<Argument> list = {
      {"NAME", Kind::Text, "Name of a schedule"},
      {"-p,--ranks", Kind::Count, "Devices"},
      {"-m,--microbatches", Kind::Count, "Micro-batches in one iteration"},
      {"-v,--chunks", Kind::Count, "Stages on each device (default: the fewest that the schedule has)"},
      {"-s,--set", Kind::List, "An option of the schedule, key=value; may be repeated"},
      {"--file", Kind::Text, "Check and time a schedule in PyTorch's CSV text instead"},
      {"--f", Kind::Number, "Time of a forward", "1"},
      {"--b", Kind::Number, "Time of a backward (default: twice the forward, or I + W)"},
      {"--i", Kind::Number, "Time of an input gradient"},
      {"--w", Kind::Number, "Time of a weight gradient"},
      {"--r", Kind::Number, "Time of a recomputation (default: the forward)"},
      {"--u", Kind::Number, "Time of an update", "0"},
      {"--comm", Kind::Number, "Delay between two devices", "0"},
      {"--format", Kind::Text, "grid, gantt, csv or json", "grid"}};
  for (Argument& argument : file_check_arguments()) list.push_back(std::move(argument));
  return list;
}

}  // namespace

extern const Command schedule{
    .name = "schedule",
    .summary = "A schedule without a scenario: order, makespan, period, bubble, peak activations",
    .group = "Look before you run",
    .example = "stagecraft schedule 1f1b -p 4 -m 8 --f 1 --b 2",
    .arguments = arguments(),
    .run = execute,
};

}  // namespace stagecraft::commands
