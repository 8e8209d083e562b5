#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/report/drawings.hpp"
#include "sim/report/results_fields.hpp"
#include "sim/search/schedule_table.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

/// A row of the table: name, where the number stands, its unit and a factor to show it with.
struct Row {
  const char* name;
  const char* key;
  const char* unit;
  double factor;
};
constexpr Row kRows[] = {{"one iteration", "makespan_s", "ms", 1e3},          {"period", "period_s", "ms", 1e3},
                         {"throughput", "throughput_samples_per_s", "/s", 1}, {"bubble", "bubble", "%", 100},
                         {"steady bubble", "steady_bubble", "%", 100},        {"energy", "energy_J", "J", 1}};

Json results_in(const std::string& given) {
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

/// NaN for what was not timed.
double number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

double peak_memory(const Json& json) {
  double peak = 0;
  for (const Json& d : json.at("devices").items()) {
    const double device_peak = number(d, "peak_memory_bytes");
    if (std::isnan(device_peak)) return device_peak;
    peak = std::max(peak, device_peak);
  }
  return peak;
}

std::string change(double value, double base) {
  return base == 0 || !std::isfinite(value / base) ? "" : fmt::format("{:+.2f} %", 100 * (value / base - 1));
}

int print_table(const Arguments& a) {
  check_format(a.text("format"), {"text", "csv"});
  const auto files = a.list("RUN");
  if (files.size() < 2) throw InputError("two runs or more are needed", "stagecraft compare out/a out/b");
  std::vector<Json> runs;
  for (const std::string& f : files) runs.push_back(results_in(f));
  const bool csv = a.text("format") == "csv";
  std::string text = csv ? "number,unit" : fmt::format("{:<16}", "");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& p = runs[i].at("provenance");
    const std::string name = fmt::format("{} ({})", files[i], p.at("clock").text());
    text += csv ? "," + csv_cell(name) : fmt::format("{:>28}", name);
  }
  text += '\n';
  const auto line = [&](const char* name, const char* unit, auto&& value) {
    text += csv ? fmt::format("{},{}", name, unit) : fmt::format("{:<16}", name);
    const double base = value(runs.front());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double v = value(runs[i]);
      const std::string difference = i == 0 ? "" : change(v, base);
      text += csv ? "," + shortest(v)
                  : fmt::format("{:>28}",
                                std::isnan(v) ? "not timed" : fmt::format("{:.5g} {}{:>11}", v, unit, difference));
    }
    text += '\n';
  };
  for (const Row& r : kRows) line(r.name, r.unit, [&](const Json& j) { return number(j, r.key) * r.factor; });
  const double first_peak = peak_memory(runs.front()), mebibyte = 1024.0 * 1024, gibibyte = 1024 * mebibyte;
  const bool large = first_peak >= gibibyte / 16;
  line("peak memory", large ? "GiB" : "MiB",
       [&](const Json& j) { return peak_memory(j) / (large ? gibibyte : mebibyte); });
  print(text);
  return 0;
}

/// Prints the numbers of runs that were kept, RUN after RUN, with changes against the first.
int compare_runs(const Arguments& a) try { return print_table(a); } catch (const JsonError& e) {
  throw InputError(fmt::format("a results.json lacks what is compared: {}", e.what()), "run the scenario again");
}

constexpr int kWidth = 100;
constexpr const char* kReplay = "all";

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
  o.replay = replay_rows(a, o.backend, kReplay);
  o.keep = a.flag("gantt") || a.has("svg");
  ScheduleTable table = compare_schedules(load_experiment(file, a.list("set")), o, show_progress);
  hide_progress();
  return table;
}

std::string in_format(const ScheduleTable& table, const std::string& format) {
  if (format == "csv") return schedules_csv(table);
  return format == "json" ? schedules_json(table) + "\n" : to_text(table);
}

/// Arguments of `compare --schedules` other than the scenario. They have no fallback, so that has() says which are
/// given.
std::vector<Argument> compare_schedules_arguments() {
  using Kind = Argument::Kind;
  return {{"--schedules", Kind::Text,
           "Compare schedules on one scenario, over 5 iterations or more: all, or names with commas between"},
          {"-s,--set", Kind::List, "With --schedules: path=value, such as run.micro_batches=16; may be repeated"},
          {"-b,--backend", Kind::Text, "With --schedules: what simulates it (default: ideal)"},
          replay_argument(kReplay, "With --schedules"),
          {"--by", Kind::Text, "With --schedules: sort by time, period, memory or traffic (default: period)"},
          {"--gantt", Kind::Flag, "With --schedules: draw the first iteration of each, all on one time scale"},
          {"--width", Kind::Count, "With --gantt: columns of the longest (default: 100)"},
          {"--svg", Kind::Text, "With --schedules: file for the same as a picture"},
          force_argument()};
}

/// Prints every schedule of --schedules on the scenario RUN, and the answer. 3 when none of them can run.
int compare_schedules(const Arguments& a) {
  const std::string format = a.text("format");
  check_format(format, {"text", "csv", "json"});
  const std::string file = scenario_of(a);
  const SortKey by = a.has("by") ? parse_sort_key(a.text("by")) : SortKey::Period;
  const int width = a.has("width") ? a.count("width", 20, 1000) : kWidth;
  if (a.flag("gantt") && format != "text")
    throw InputError("--gantt draws below the table, which csv and json are not", "--format text, or --svg FILE");
  if (a.has("svg")) check_output_of(a, "svg");
  ScheduleTable table = table_of(a, file, by);
  sort_rows(table, by);
  for (const std::string& note : table.notes) print_error("note: {}\n", note);
  if (const std::string line = unexchanged_text(table); format != "text" && !line.empty())
    print_error("note: {}\n", line);
  print(in_format(table, format));
  if (std::none_of(table.rows.begin(), table.rows.end(), [](const ScheduleRow& r) { return r.ran(); })) return 3;
  if (a.flag("gantt")) print("\n" + gantt_strips(strips_of(table), table.cluster, width));
  if (a.has("svg")) {
    write_output_of(a, "svg", strips_svg(strips_of(table), table.cluster, table.title), CommentStyle::Markup);
    print_error("wrote {}\n", a.text("svg"));
  }
  return 0;
}

}  // namespace

}  // namespace stagecraft

namespace stagecraft::commands {
namespace {

std::vector<Argument> arguments() {
  std::vector<Argument> result{{"RUN",
                                Argument::Kind::List,
                                "Folders that run --out wrote, held against the first; with --schedules, a scenario",
                                {},
                                true}};
  for (Argument& a : compare_schedules_arguments()) result.push_back(std::move(a));
  result.push_back({"--format", Argument::Kind::Text, "text or csv; with --schedules also json", "text"});
  return result;
}

int execute(const Arguments& a) {
  if (a.has("schedules")) return compare_schedules(a);
  for (const char* name : {"set", "backend", "replay", "by", "gantt", "width", "svg", "force"})
    if (a.has(name)) throw InputError(fmt::format("--{} needs --schedules", name), "add --schedules all");
  return compare_runs(a);
}

}  // namespace

extern const Command compare{
    .name = "compare",
    .summary = "Put runs, or schedules on one scenario, side by side",
    .group = "Run",
    .example =
        "stagecraft compare out/a out/b\n  stagecraft compare --schedules all scenarios/examples/quickstart.yaml",
    .arguments = arguments(),
    .run = execute,
};

}  // namespace stagecraft::commands
