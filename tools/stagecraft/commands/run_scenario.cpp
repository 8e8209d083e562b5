// `stagecraft run`: compiles a scenario, runs it on a backend, in several processes if asked, prints the summary, and
// writes the run folder, trace, page and pictures.

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "backends/world.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/core/thread_scope.hpp"
#include "sim/core/threads.hpp"
#include "sim/diagnosis/framework_check.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/own_orders.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/output/drawings.hpp"
#include "sim/output/files.hpp"
#include "sim/output/rank_table.hpp"
#include "sim/output/text.hpp"
#include "sim/output/timeline_picture.hpp"
#include "sim/plan/plan_words.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/result/metrics.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/picture_options.hpp"
#include "tools/stagecraft/run_folder.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kGanttWidth = 100, kGanttDevices = 16, kGanttOps = 24;
constexpr std::size_t kMostDrawn = 20000;

bool small(const CompiledExperiment& p) {
  int used = 0;
  for (const auto& row : p.schedule.device_rows()) {
    used += !row.empty();
    if (row.size() > static_cast<std::size_t>(kGanttOps * p.program.iterations)) return false;
  }
  return used <= kGanttDevices;
}

/// What computed the times, and why that where it was not asked for.
std::string origin_text(const Arguments& a, const Cluster& cluster, const Timeline& timeline) {
  const Provenance& from = timeline.provenance;
  const std::string name = from.backend_version.empty() ? from.backend : from.backend + " " + from.backend_version;
  const char* what = timeline.clock == Clock::Simulated ? "simulated by" : "measured by";
  if (a.has("backend") || from.backend != "fluid") return fmt::format("{} {}", what, name);
  if (cluster.has_one_queue()) return fmt::format("{} {} (alone in having links with `queue: fifo`)", what, name);
  return fmt::format("{} {} (the default above {} devices; --backend simgrid is the reference)", what, name,
                     kMostDevicesOfReference);
}

std::string headline(const Arguments& a, const CompiledExperiment& p, const Outcome& o) {
  const Experiment& e = p.experiment;
  const std::vector<DeviceId> devices = devices_of(p.plan);
  return fmt::format("{}\n{} on {} of {}: {}, {}\n{}{}, {}\n\n", e.title.empty() ? "(untitled)" : e.title,
                     e.model->name, pluralize(static_cast<std::int64_t>(devices.size()), "device"), e.cluster->name,
                     schedule_title(e.schedule), plan_line(p.plan, tokens_of_sample(*e.model)),
                     p.schedule.search
                         ? "searched for: " + to_text(*p.schedule.search, [](Seconds t) { return to_text(t); }) + "\n"
                         : "",
                     origin_text(a, p.cluster(), o.timeline),
                     pluralize(static_cast<std::int64_t>(metric_value("instructions", view_of(p, o))), "instruction"));
}

void write_results(const Arguments& a, const CompiledExperiment& p, const Outcome& o) {
  const std::string folder = a.text("out");
  const config::Value& scenario = *p.experiment.source;
  const std::string& title = p.experiment.title;
  const config::Value* report = scenario.find("report");
  const bool drawn = o.timeline.instruction_times;
  const auto wanted = [&](const char* what) { return drawn && (!report || config::as_bool(report->at(what))); };
  const std::size_t size = p.program.size();
  if (!drawn)
    print_error("files about instructions are not written: instructions were not timed (run.gpu.timing: off)\n");
  std::vector<RunFile> files{{"scenario.yaml", [&] { return config::to_yaml(scenario, true); }}};
  if (wanted("spans")) {
    files.push_back({"spans.csv", [&] { return spans_csv(p.program, o.timeline, o.report, p.cluster()); }});
    files.push_back({"memory.csv", [&] { return memory_csv(p.program, o.timeline, o.report, p.cluster()); }});
  }
  if (wanted("trace")) files.push_back(trace_file(a, p, o));
  if (wanted("svg") && size > kMostDrawn)
    print_error("timeline.svg is not written: it would show {} instructions, and up to {} are legible\n", size,
                kMostDrawn);
  else if (wanted("svg"))
    files.push_back({"timeline.svg", [&] {
                       return to_svg(timeline_picture(p.program, o.timeline, p.cluster(), title, kScreenPicture));
                     }});
  if (wanted("html"))
    files.push_back(
        {"report.html", [&] { return html_page(std::vector{kept_run(o.timeline.provenance.backend, p, o)}, title); }});
  if (o.timeline.learnt) files.push_back({"losses.csv", [&] { return losses_csv(*o.timeline.learnt); }});
  files.push_back({"results.json", [&] { return results_of(p, o) + "\n"; }});
  write_run(folder, files, overwrite_of(a));
  std::string written = files.back().name;
  for (std::size_t i = 0; i + 1 < files.size(); ++i) written += ", " + files[i].name;
  print_error("wrote {}/{}\n", folder, written);
}

bool simulates(const std::string& backend) {
  return get_from(backends::catalog(), "backend", backend).clock == Clock::Simulated;
}

void check_what_if(const Arguments& a) {
  if (a.flag("what-if") && a.has("backend") && !simulates(a.text("backend")))
    throw InputError(fmt::format("--what-if simulates changes, and {} does not simulate", a.text("backend")),
                     "--backend simgrid, fluid or ideal");
}

const std::vector<std::string> kRunPictures{"timeline", "memory"};

/// Writes the picture that --draw names to --svg and --pdf: one iteration, or all of the memory curves.
void draw_run(const Arguments& a, const CompiledExperiment& c, const Outcome& o) {
  if (asks_for_picture(a) && !o.timeline.instruction_times) {
    print_error("nothing is drawn: instructions were not timed (run.gpu.timing: off)\n");
    return;
  }
  write_pictures(a, [&](const PictureSize& size) {
    const std::string& title = c.experiment.title;
    if (picture_name(a, kRunPictures) == "memory")
      return memory_picture(c.program, o.timeline, o.report, c.cluster(), title, size);
    return timeline_picture(c.program, o.timeline, c.cluster(), title, size, 0);
  });
}

void print_run(const Arguments& a, const CompiledExperiment& compiled, const Outcome& outcome,
               const TextLayout& layout) {
  const Report& report = outcome.report;
  const bool details = a.flag("details"), measured = outcome.timeline.clock != Clock::Simulated;
  std::string text =
      headline(a, compiled, outcome) + answer_text(compiled.program, report, compiled.cluster(), measured);
  if (outcome.timeline.enqueued) text += enqueued_text(*outcome.timeline.enqueued);
  if (!outcome.timeline.lateness.empty()) text += lateness_text(outcome.timeline.lateness);
  if (const std::string limits = to_text(report.diagnosis); !limits.empty()) text += "\n" + limits;
  if (details) text += "\n" + details_text(compiled.program, report, compiled.cluster(), measured);
  if (!report.ranks.empty()) text += "\n" + ranks_text(report, compiled.cluster(), layout, details);
  // --columns chooses columns of the table of pipeline ranks alone.
  const TextLayout all_columns{.width = layout.width, .columns = {}, .color = layout.color};
  if (outcome.timeline.learnt) text += "\n" + learnt_text(*outcome.timeline.learnt, compiled.cluster(), all_columns);
  if (a.flag("what-if")) text += "\n" + what_if_text(report.diagnosis, report.period, details);
  print_text(wrap_lines(text, layout.width), layout);
  if (!details || !small(compiled) || !outcome.timeline.instruction_times || a.flag("no-gantt")) return;
  const Strip strip{"", compiled.program, outcome.timeline};
  const int width = gantt_width(compiled.cluster(), kGanttWidth, layout);
  print("\n" + gantt(compiled.program, outcome.timeline, compiled.cluster(), 0, width) +
        wrap_lines(gantt_legend({&strip, 1}), layout.width));
}

void write_page(const Arguments& a, const CompiledExperiment& compiled, const Outcome& outcome) {
  if (!outcome.timeline.instruction_times) {
    print_error("{} is not written: instructions were not timed (run.gpu.timing: off)\n", a.text("html"));
    return;
  }
  const std::string& given_title = compiled.experiment.title;
  const std::string title = given_title.empty() ? a.text("FILE") : given_title;
  write_output_of(a, "html", html_page(std::vector{kept_run(a.text("FILE"), compiled, outcome)}, title),
                  CommentStyle::Markup);
  print_error("wrote {}\n", a.text("html"));
}

/// The rules of the framework that a plan breaks. It is simulated all the same, but the framework would not run it.
void note_broken_rules(const CompiledExperiment& compiled) {
  for (const Diagnostic& d : framework_refusals(compiled))
    if (d.code != kModelRefusal && d.code != kScheduleRefusal) print_error("note: {}\n", full_message(d));
}

/// Whether an output has the instructions of all replicas: a file, a picture, or the timeline that --details draws.
bool lists_instructions(const Arguments& a) {
  return a.has("out") || a.has("trace") || a.has("html") || asks_for_picture(a) ||
         (a.flag("details") && !a.flag("no-gantt"));
}

/// Threads for what a large run computes. A third of it is done by one thread, and each takes memory for itself, so
/// more than four have to be asked for.
int threads_of(const Arguments& a) {
  if (a.has("jobs")) return a.count("jobs", 1, 1024);
  return launched().size > 1 ? 1 : std::min(4, thread_count(0));
}

std::string backend_of(const Arguments& a, const PlannedExperiment& p) {
  return a.has("backend") ? a.text("backend") : default_backend(p.plan, p.cluster());
}

int execute_run_scenario(const Arguments& a) {
  const std::string format = a.text("format");
  check_table_format(a, {"text", "json", "csv", "markdown"});
  if (a.has("backend")) simulates(a.text("backend"));  // Reports a wrong name before planning starts.
  const TextLayout layout = layout_of(a);
  check_what_if(a);
  if (a.has("html")) check_output_of(a, "html");
  check_picture_options(a, kRunPictures);
  check_trace_options(a);
  const ThreadScope threads(threads_of(a));
  CompiledExperiment compiled =
      compile_or_advise(load_experiment(a.text("FILE"), a.list("set")), [&](const PlannedExperiment& p) {
        return lists_instructions(a) ? compile(p) : compile_for_report(p, backend_of(a, p));
      });
  if (a.has("out") && world().rank == 0) make_run_folder(a.text("out"), overwrite_of(a));
  Outcome outcome = run(compiled, backend_of(a, compiled));
  if (outcome.timeline.elsewhere) return 0;
  add_interval(compiled, outcome);
  add_diagnosis(compiled, outcome, a.text("FILE"), a.list("set"), a.flag("what-if") ? WhatIf::Every : WhatIf::First);
  for (const std::string& line : remarks(compiled)) print_error("note: {}\n", line);
  if (backend_of(a, compiled) == "cpu" && compiled.experiment.source->at("run").find("gpu"))
    print_error("note: run.gpu has options of the backend cuda, which cpu does not use\n");
  note_broken_rules(compiled);
  if (outcome.timeline.processes > 1)
    print_error("{} processes ran it together; their clocks agree to {}\n", outcome.timeline.processes,
                to_text(outcome.timeline.clock_uncertainty));
  if (format == "json")
    print(results_of(compiled, outcome) + "\n");
  else if (format != "text")
    print(table_in_format(rank_table(outcome.report, compiled.cluster()), format, layout));
  else
    print_run(a, compiled, outcome, layout);
  if (a.has("out")) write_results(a, compiled, outcome);
  if (a.has("trace")) write_trace(a, compiled, outcome);
  draw_run(a, compiled, outcome);
  if (a.has("html")) write_page(a, compiled, outcome);
  return 0;
}

std::vector<Argument> run_arguments() {
  std::vector<Argument> arguments{
      {"FILE", Argument::Kind::Text, "Scenario", {}, true},
      {"-b,--backend", Argument::Kind::Text,
       fmt::format("Backend: stagecraft list backends (default: simgrid; above {} devices fluid)",
                   kMostDevicesOfReference)},
      {"-s,--set", Argument::Kind::List, "path=value, such as run.micro_batches=16; may be repeated"},
      {"-o,--out", Argument::Kind::Text,
       "Folder for results.json, spans.csv, memory.csv, trace.json (.gz of large runs) and the resolved scenario"},
      {"--trace", Argument::Kind::Text,
       "Write the trace for ui.perfetto.dev to this file too, compressed if its name ends in .gz"},
      trace_range_argument(),
      {"--html", Argument::Kind::Text,
       "Write the run as an HTML page to this file; stagecraft report compares several"},
      force_argument(),
      {"--what-if", Argument::Kind::Flag, "Simulate the changes that every cause suggests, and print what each saves"},
      quiet_argument(),
      details_argument("all numbers of the run, all columns of the table, and the timeline of small runs"),
      {"-j,--jobs", Argument::Kind::Count,
       "Threads that compute a run of 200,000 instructions or more; the answer is the same with any number (default: "
       "one for each core, at most 4; one with --processes, --hosts or mpirun)"},
      {"--no-gantt", Argument::Kind::Flag, "With --details: do not draw the timeline of small runs"},
      {"--format", Argument::Kind::Text, "text, json, csv, markdown or latex", "text"}};
  for (Argument& a : picture_arguments("the first iteration")) arguments.push_back(std::move(a));
  arguments.push_back(draw_argument(kRunPictures));
  arguments.push_back(
      {"--processes", Argument::Kind::Count, "Really run it in this many processes on this machine, over TCP"});
  for (Argument& a : host_arguments()) arguments.push_back(std::move(a));
  return with_table_arguments(std::move(arguments));
}

}  // namespace

extern const Command run_scenario{
    .name = "run",
    .summary = "Run a scenario on a backend and print its numbers",
    .group = "Plan",
    .example = "stagecraft run examples/quickstart --backend simgrid --set run.micro_batches=16 --out out/a",
    .arguments = run_arguments(),
    .run = execute_run_scenario,
    .shared = [](const Arguments& a) { return a.has("backend") && !simulates(a.text("backend")); },
};

}  // namespace stagecraft::commands
