// `stagecraft sweep`: runs the points of a sweep that have no result yet, alone or with other processes, into a SQLite
// file, and prints and draws its table.

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "backends/world.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"
#include "sim/sweep/run_sweep.hpp"
#include "sim/sweep/sweep_picture.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/picture_options.hpp"
#include "tools/stagecraft/sweep_points.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kSomeFailed = 3;
const std::vector<std::string> kSweepPictures{"lines", "map", "front"};

SweepOptions options_of(const Arguments& a) {
  SweepOptions o;
  o.file = a.text("FILE");
  o.sets = a.list("set");
  o.only = a.list("only");
  if (a.has("shard")) o.shard = parse_shard(a.text("shard"));
  o.backend = a.text("backend");
  if (!o.backend.empty()) get_from(backends::catalog(), "backend", o.backend);
  if (a.has("jobs")) o.jobs = a.count("jobs", 1, 1024);
  if (a.has("timeout")) o.timeout = Seconds{a.number("timeout")};
  o.retry = a.flag("retry");
  o.reuse = a.flag("reuse");
  o.out = a.text("out");
  o.stop = NotedInterrupt::came;
  o.together = launched().size > 1;
  return o;
}

int list_points(const SweepPlan& plan) {
  const int count = plan.count();
  const auto digits = std::to_string(plan.points.size()).size();
  for (std::size_t i = 0; i < plan.points.size(); ++i)
    if (plan.chosen[i]) print(fmt::format("{:>{}}  {}\n", plan.points[i].number, digits, plan.points[i].label));
  print(pluralize(count, "point") +
        (std::ssize(plan.points) == count ? "\n" : fmt::format(" of {}\n", plan.points.size())));
  return 0;
}

SweepView view_of(const Arguments& a) {
  using Kind = SweepView::Kind;
  const std::string name = picture_name(a, kSweepPictures);
  const auto text = [&](const char* option) { return a.has(option) ? a.text(option) : std::string(); };
  return {name == "map"     ? Kind::Map
          : name == "front" ? Kind::Front
                            : Kind::Lines,
          text("metric"), text("over"), text("by"), labels_of(a, "run.micro_batches='micro-batches'")};
}

struct SweepRequest {
  SweepOptions options;
  SweepPlan plan;
};

SweepRequest read(const Arguments& a) {
  check_table_format(a, {"text", "csv", "json", "markdown"});
  check_picture_options(a, kSweepPictures);
  SweepRequest request{options_of(a), {}};
  request.plan = plan_sweep(request.options);
  if (asks_for_picture(a)) check_sweep_view(planned_table(request.plan), view_of(a));
  for (const char* option : {"metric", "over", "by"})
    if (a.has(option) && !asks_for_picture(a))
      throw InputError(fmt::format("--{} is for pictures", option), "add --svg FILE or --pdf FILE");
  return request;
}

/// Reads the arguments. After an error this process still joins the others, so that none of them waits for it.
SweepRequest read_together(const Arguments& a) {
  try {
    return read(a);
  } catch (const std::exception&) {
    join_world(build_name());
    throw;
  }
}

int execute_sweep(const Arguments& a) {
  const std::string format = a.text("format");
  const TextLayout layout = layout_of(a);
  const auto& [options, plan] = a.flag("list") ? read(a) : read_together(a);
  if (launched().rank == 0) warn(plan.warnings);
  if (a.flag("list")) return list_points(plan);

  SweepEnd end;
  {
    // Under a launcher the other signals mean that another process was lost.
    const NotedInterrupt noted = launched().size > 1 ? NotedInterrupt({SIGINT}) : NotedInterrupt();
    end = run_points(plan, options);
  }
  if (end.elsewhere) return 0;
  for (const int rank : end.lost)
    print_error("process {} of {} was lost; others have done what it had\n", rank, world().size);
  for (const auto& [rank, why] : end.without_workers)
    print_error("process {} of {}: {}; others have done what it had\n", rank, world().size, why);
  if (options.reuse) print_error("{} taken over from other versions\n", pluralize(end.reused, "result"));
  const SweepProgress& p = end.progress;
  print_error("{} on {}: {} there before, {} now, results in {}\n", pluralize(p.total, "point"), plan.backend, p.there,
              p.done, plan.out);
  if (end.stopped) {
    print_error("{}: {} to go, which the same command does\n", NotedInterrupt::word(), p.total - p.there - p.done);
    return NotedInterrupt::exit_code();
  }
  if (format == "text")
    print_text(to_text(end.table, layout), layout);
  else
    print(format == "json" ? sweep_json(end.table) + "\n" : table_in_format(rows_of(end.table), format, layout));
  flush();
  write_pictures(a, [&](const PictureSize& size) { return sweep_picture(end.table, view_of(a), size); });
  if (const std::string note = devices_note(end.table); !note.empty()) print_error("note: {}\n", note);
  const int failed = end.table.failed();
  if (failed == 0) return 0;
  print_error("{} of {} failed:\n{}", failed, pluralize(p.total, "point"), failures_text(end.table));
  return kSomeFailed;
}

std::vector<Argument> sweep_arguments() {
  std::vector<Argument> arguments{
      {"FILE", Argument::Kind::Text, "Sweep: a scenario and the values that vary", {}, true},
      {"--list", Argument::Kind::Flag, "Print the points and run none"},
      {"--only", Argument::Kind::List,
       "path=value: only points with this value. Several values of one path: any of them; several paths: "
       "all of them"},
      {"-s,--set", Argument::Kind::List, "path=value, for every point; may be repeated"},
      {"--shard", Argument::Kind::Text, "2/4: run the second of four shards, each on its own machine"},
      {"-b,--backend", Argument::Kind::Text,
       "Backend (default: the sweep's; else simgrid, or fluid where links have one queue)"},
      {"-j,--jobs", Argument::Kind::Count,
       "Workers of each process (default: one for each core; one if times are measured, and with --hosts or mpirun)"},
      {"--timeout", Argument::Kind::Number, "Seconds after which a point is stopped (default: none)"},
      {"--retry", Argument::Kind::Flag, "Run points again that crashed, timed out or failed in the backend"},
      {"--reuse", Argument::Kind::Flag,
       "Use results of other versions of Stagecraft for points without a result of this version"},
      quiet_argument(),
      {"-o,--out", Argument::Kind::Text, "SQLite file for the results (default: the sweep's name with .db)"},
      {"--format", Argument::Kind::Text, "text, csv, json, markdown or latex", "text"}};
  for (Argument& a : picture_arguments("the results")) arguments.push_back(std::move(a));
  arguments.push_back(draw_argument(kSweepPictures));
  arguments.push_back(
      {"--metric", Argument::Kind::Text, "With --svg or --pdf: the metric to draw, such as throughput_samples_per_s"});
  arguments.push_back({"--over", Argument::Kind::Text,
                       "With --svg or --pdf: the setting on the horizontal axis (default: that with most values)"});
  arguments.push_back({"--by", Argument::Kind::Text,
                       "With --svg or --pdf: the setting that gives the lines, or the vertical axis of the map"});
  arguments.push_back(
      {"--label", Argument::Kind::List,
       "With --svg or --pdf: PATH=TEXT, what an axis is called, for a path or a metric; may be repeated"});
  for (Argument& a : host_arguments()) arguments.push_back(std::move(a));
  return with_table_arguments(std::move(arguments));
}

}  // namespace

extern const Command sweep{
    .name = "sweep",
    .summary = "Run every point of a sweep; an interrupted sweep resumes",
    .group = "Plan",
    .example = "stagecraft sweep scenarios/sweeps/schedules.yaml --out schedules.db",
    .arguments = sweep_arguments(),
    .run = execute_sweep,
    .shared = [](const Arguments& a) { return !a.flag("list"); },
    .joins = true,
};

}  // namespace stagecraft::commands
