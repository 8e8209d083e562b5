// `stagecraft compare`: reads kept runs and prints their numbers next to each other, or simulates schedules of one
// scenario with --schedules; both may draw timelines.

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/output/drawings.hpp"
#include "sim/output/json_files.hpp"
#include "sim/output/timeline_picture.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/search/schedule_table.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/picture_options.hpp"
#include "tools/stagecraft/run_folder.hpp"
#include "tools/stagecraft/run_table.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft {
namespace {

Json compare_results_in(const std::string& given) {
  std::error_code error;
  const std::string file = std::filesystem::is_directory(given, error) ? given + "/results.json" : given;
  if (!std::filesystem::exists(file, error))
    throw InputError({{{given, 0, 0},
                       {},
                       "there are no results here",
                       "give the folder that stagecraft run --out wrote",
                       "unreadable-file"}});
  return read_results(read_file(file), file);
}

void print_runs(const Table& table, const TextLayout& layout, const std::string& plans, const std::string& limits,
                const std::string& changes) {
  for (const Table& part : split_columns(select_columns(table, layout.columns), 1, layout))
    print_text(to_text(part, {.width = layout.width, .color = layout.color}), layout);
  for (const std::string& text : {plans, limits, changes})
    if (!text.empty()) print_text("\n" + wrap_lines(text, layout.width), layout);
}

/// The runs of `RUN`, with the names that --label gives them.
std::vector<NamedResults> runs_of(const Arguments& a) {
  const std::vector<std::string> files = a.list("RUN");
  const std::map<std::string, std::string> labels = labels_of(a, "out/a='before'");
  for (const auto& [path, label] : labels)
    if (std::find(files.begin(), files.end(), path) == files.end())
      throw InputError(fmt::format("--label: '{}' is none of the runs", path), "one of " + join(files));
  std::vector<NamedResults> runs;
  for (const std::string& file : files) {
    const auto label = labels.find(file);
    runs.push_back({label == labels.end() ? file : label->second, compare_results_in(file)});
  }
  return runs;
}

/// The first iterations of runs in these folders, below each other.
std::vector<TimelineStrip> timelines_of(const std::vector<std::string>& folders,
                                        const std::vector<NamedResults>& runs) {
  std::vector<TimelineStrip> strips;
  for (std::size_t i = 0; i < folders.size(); ++i)
    strips.push_back(timeline_strip(read_kept_run(folders[i]), runs[i].name));
  return strips;
}

int print_table(const Arguments& a) {
  check_table_format(a, {"text", "csv", "json", "markdown"});
  const TextLayout layout = layout_of(a);
  check_picture_options(a);
  const auto files = a.list("RUN");
  if (files.size() < 2)
    throw InputError(
        "two runs or more are needed",
        "stagecraft compare out/a out/b; stagecraft compare --schedules gpipe,1f1b SCENARIO runs schedules");
  const std::vector<NamedResults> runs = runs_of(a);
  const Table table = run_table(runs);
  if (const std::string note = devices_note(runs); !note.empty()) print_error("note: {}\n", note);
  if (const std::string note = batches_note(runs); !note.empty()) print_error("warning: {}\n", note);
  if (a.text("format") == "json")
    print(runs_json(runs) + "\n");
  else if (a.text("format") != "text")
    print(table_in_format(table, a.text("format"), layout));
  else
    print_runs(table, layout, plans_text(runs), limits_text(runs), scenario_changes_text(files));
  if (!asks_for_picture(a)) return 0;
  const std::vector<TimelineStrip> strips = timelines_of(files, runs);
  write_pictures(a, [&](const PictureSize& size) { return strips_picture(strips, {}, size); });
  return 0;
}

/// Prints the numbers of runs that were kept, RUN after RUN, with changes against the first.
int compare_runs(const Arguments& a) try { return print_table(a); } catch (const JsonError& e) {
  throw InputError(fmt::format("a results.json lacks what is compared: {}", e.what()), "run the scenario again");
}

constexpr int kStripsWidth = 100;
constexpr const char* kCompareReplay = "all";

std::string scenario_of(const Arguments& a) {
  const auto given = a.list("RUN");
  if (given.size() == 1) return given.front();
  throw InputError(fmt::format("--schedules takes one scenario, and {} are given", given.size()),
                   "runs are compared without --schedules");
}

ScheduleTable table_of(const Arguments& a, const std::string& file, SortKey by) {
  ScheduleTableOptions o{.schedules = a.text("schedules")};
  if (a.has("backend")) o.backend = a.text("backend");
  o.by = by;
  o.replay = replay_rows(a, o.backend, kCompareReplay);
  o.keep = a.flag("gantt") || asks_for_picture(a);
  const Experiment experiment = load_experiment(file, a.list("set"));
  const NotedInterrupt noted;
  const StopScope scope(NotedInterrupt::came);
  ScheduleTable table = compare_schedules(experiment, o);
  table.interval = prediction_interval(experiment);
  return table;
}

/// Arguments of `compare` other than runs or the scenario. They have no fallback, so that has() says which are
/// given.
std::vector<Argument> compare_schedules_arguments() {
  using Kind = Argument::Kind;
  std::vector<Argument> arguments{
      {"--schedules", Kind::Text,
       "Compare schedules on one scenario, over 5 iterations or more: all, or names and files of your own orders "
       "(NAME.csv, as PyTorch writes them) with commas between"},
      {"-s,--set", Kind::List, "With --schedules: path=value, such as run.micro_batches=16; may be repeated"},
      {"-b,--backend", Kind::Text, "With --schedules: what simulates it (default: ideal)"},
      replay_argument(kCompareReplay, "With --schedules"),
      {"--by", Kind::Text, "With --schedules: sort by time, period, memory or traffic (default: period)"},
      {"--gantt", Kind::Flag, "With --schedules: draw the first iteration of each schedule, all on one time scale"},
      {"--width", Kind::Count,
       "With --gantt: width of the longest line in characters (default: 100, or the terminal if it is narrower)"},
      {"--label", Kind::List, "RUN=TEXT, what tables and pictures call a run; may be repeated"},
      force_argument()};
  for (Argument& a : picture_arguments("the first iterations, all on one time scale,"))
    arguments.push_back(std::move(a));
  return arguments;
}

constexpr int kNoneRuns = 3;

/// Prints every schedule of --schedules on the scenario RUN, and the answer; after Ctrl-C those that were complete.
int compare_schedules(const Arguments& a) try {
  const std::string format = a.text("format");
  check_table_format(a, {"text", "csv", "json", "markdown"});
  const TextLayout layout = layout_of(a);
  const std::string file = scenario_of(a);
  const SortKey by = a.has("by") ? parse_sort_key(a.text("by")) : SortKey::Period;
  if (a.flag("gantt") && format != "text")
    throw InputError("--gantt draws below a table of text", "--format text, or --svg FILE");
  if (a.has("width")) a.count("width", 20, 1000);
  check_picture_options(a);
  ScheduleTable table = table_of(a, file, by);
  sort_rows(table, by);
  for (const std::string& note : table.notes) print_error("note: {}\n", note);
  if (const std::string line = unexchanged_text(table); format != "text" && !line.empty())
    print_error("note: {}\n", line);
  if (format == "text")
    print_text(to_text(table, layout), layout);
  else
    print(format == "json" ? schedules_json(table) + "\n" : table_in_format(rows_of(table), format, layout));
  if (!table.not_compared.empty()) {
    flush();
    print_error("{}; the table has {}, without {}\n", NotedInterrupt::word(), pluralize(std::ssize(table.rows), "row"),
                pluralize(std::ssize(table.not_compared), "schedule"));
    return NotedInterrupt::exit_code();
  }
  if (std::none_of(table.rows.begin(), table.rows.end(), [](const ScheduleRow& r) { return r.ran(); }))
    return kNoneRuns;
  if (a.flag("gantt")) {
    const int width = a.has("width") ? a.count("width", 20, 1000) : gantt_width(table.cluster, kStripsWidth, layout);
    print("\n" + gantt_strips(strips_of(table), table.cluster, width) +
          wrap_lines(gantt_legend(strips_of(table)), layout.width));
  }
  write_pictures(
      a, [&](const PictureSize& size) { return strips_picture(strips_of(table), table.cluster, table.title, size); });
  return 0;
} catch (const Stopped&) {
  print_error("{} before the first schedule was compared; nothing was kept\n", NotedInterrupt::word());
  return NotedInterrupt::exit_code();
}

}  // namespace

}  // namespace stagecraft

namespace stagecraft::commands {
namespace {

std::vector<Argument> compare_arguments() {
  std::vector<Argument> compare_arguments{
      {"RUN",
       Argument::Kind::List,
       "Folders that run --out wrote; the first is the baseline. With --schedules, a scenario",
       {},
       true}};
  for (Argument& a : compare_schedules_arguments()) compare_arguments.push_back(std::move(a));
  compare_arguments.push_back(quiet_argument());
  compare_arguments.push_back({"--format", Argument::Kind::Text, "text, csv, json, markdown or latex", "text"});
  return with_table_arguments(std::move(compare_arguments));
}

int execute_compare(const Arguments& a) {
  if (a.has("schedules") && a.has("label"))
    throw InputError("--label is for runs, and schedules have names", "leave it out");
  if (a.has("schedules")) return compare_schedules(a);
  for (const char* name : {"set", "backend", "replay", "by", "gantt", "width"})
    if (a.has(name)) throw InputError(fmt::format("--{} needs --schedules", name), "add --schedules all");
  return compare_runs(a);
}

}  // namespace

extern const Command compare{
    .name = "compare",
    .summary = "Compare runs, or schedules on one scenario",
    .group = "Plan",
    .example =
        "stagecraft compare out/a out/b\n  stagecraft compare --schedules all scenarios/examples/quickstart.yaml",
    .arguments = compare_arguments(),
    .run = execute_compare,
};

}  // namespace stagecraft::commands
