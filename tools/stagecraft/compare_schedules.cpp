#include "tools/stagecraft/compare_schedules.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/report/drawings.hpp"
#include "sim/search/schedule_table.hpp"
#include "tools/stagecraft/replay_option.hpp"

namespace stagecraft {
namespace {

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

}  // namespace

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
          {"--svg", Kind::Text, "With --schedules: file for the same as a picture"}};
}

int compare_schedules(const Arguments& a) {
  const std::string format = a.text("format");
  check_format(format, {"text", "csv", "json"});
  const std::string file = scenario_of(a);
  const SortKey by = a.has("by") ? parse_sort_key(a.text("by")) : SortKey::Period;
  const int width = a.has("width") ? a.count("width", 20, 1000) : kWidth;
  if (a.flag("gantt") && format != "text")
    throw InputError("--gantt draws below the table, which csv and json are not", "--format text, or --svg FILE");
  ScheduleTable table = table_of(a, file, by);
  sort_rows(table, by);
  for (const std::string& note : table.notes) fmt::print(stderr, "note: {}\n", note);
  if (const std::string line = unexchanged_text(table); format != "text" && !line.empty())
    fmt::print(stderr, "note: {}\n", line);
  print(in_format(table, format));
  if (std::none_of(table.rows.begin(), table.rows.end(), [](const ScheduleRow& r) { return r.ran(); })) return 3;
  if (a.flag("gantt")) print("\n" + gantt_strips(strips_of(table), table.cluster, width));
  if (a.has("svg")) {
    write_file(a.text("svg"), strips_svg(strips_of(table), table.cluster, table.title));
    fmt::print(stderr, "wrote {}\n", a.text("svg"));
  }
  return 0;
}

}  // namespace stagecraft
