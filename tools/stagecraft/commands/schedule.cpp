// `stagecraft schedule`: checks and times an order of work without a scenario (asked_order.cpp), and
// prints it as a grid, a timeline, CSV or JSON.

#include <algorithm>

#include <fmt/core.h>

#include "sim/output/drawings.hpp"
#include "sim/output/json_files.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tools/stagecraft/asked_order.hpp"
#include "tools/stagecraft/schedule_file.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kTimelineWidth = 100;     // Characters of the timeline.
constexpr std::size_t kMostPeaks = 64;  // Printed one by one.

/// Twelve digits, which hide the rounding errors of sums.
std::string rounded(double value) { return fmt::format("{:.12g}", value); }

std::string numbers_text(const Report& report, const std::vector<double>& peaks) {
  const std::string period = rounded(report.period.value);
  std::string text =
      fmt::format("makespan {}  period {}  bubble {:.4g} ({:.4g} of {})  peak activations",
                  rounded(report.makespan.value), period, report.bubble, report.time.bubble.value, period);
  for (std::size_t d = 0; d < std::min(peaks.size(), kMostPeaks); ++d) text += " " + rounded(peaks[d]);
  if (peaks.size() > kMostPeaks) text += fmt::format(" ... and {} more", peaks.size() - kMostPeaks);
  return text + '\n';
}

bool splits_backward(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const std::vector<Op>& ops) {
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::InputGradient; });
  });
}

/// What the times of the table are times of.
std::string unit_text(const AskedOrder& q, const StageCost& cost) {
  const char* const stage = q.plan.stage_count() > q.plan.device_count() ? "stage (chunk)" : "stage";
  std::string text =
      fmt::format("times: a forward of one micro-batch in one {} takes {}", stage, rounded(cost.forward.value));
  if (q.trains) text += fmt::format(", a backward {}", rounded(cost.backward.value));
  if (q.trains && splits_backward(q.one))
    text += fmt::format(" (I {}, W {})", rounded(cost.input_gradient.value), rounded(cost.weight_gradient.value));
  return text + fmt::format("; activations: stashes of one micro-batch in one {}\n", stage);
}

std::string warnings_text(const CheckedFile& checked) {
  std::string text;
  for (const ScheduleProblem& w : checked.warnings) text += "warning: " + to_text(w) + '\n';
  return text;
}

bool has_messages(const ActionTable& table) {
  for (const auto& row : table.ranks)
    if (std::any_of(row.begin(), row.end(), [](const Action& action) { return action.is_message(); })) return true;
  return false;
}

/// The grid with rows cut where the terminal ends.
std::string cut_grid(const std::string& grid, const TextLayout& layout) {
  if (layout.width == 0) return grid;
  std::string text;
  bool cut = false;
  for (const std::string& line : split(grid, '\n')) {
    const std::string shown = shorten(line, layout.width);
    cut = cut || shown != line;
    text += shown + '\n';
  }
  text.pop_back();  // split() ends with what follows the last line break.
  return text + (cut ? "operations not shown: the ends of the rows (--wide)\n" : "");
}

int execute_schedule(const Arguments& a) {
  const std::string format = a.text("format");
  check_format(format, {"grid", "csv", "json", "gantt"});
  const AskedOrder q = asked_order(a, kTimedIterations);
  if (format == "json" && !q.checked.good()) {
    print(with_findings("{}", q.checked, q.name) + "\n");
    return exit_code(q.checked);
  }
  throw_if_bad(q.checked, q.name);
  if (has_messages(q.checked.csv.actions) && a.has("file") && !a.has("streams"))
    print_error("note: whether the messages in {} wait for each other in a circle is not checked without --streams\n",
                q.name);
  if (format == "csv") {
    print_error("{}", warnings_text(q.checked));
    return print(to_csv(without_updates(q.one))), 0;
  }
  const auto [program, cluster, timeline, report, peaks] =
      time_order(q, asked_costs(a), Seconds{a.number("comm")}, check_options(a).memory.freed_at_input);
  if (format == "json")
    return print(with_findings(schedule_json(q.name, program, report, peaks, q.search), q.checked, q.name) + "\n"), 0;
  const TextLayout layout = layout_of(a);
  const std::string drawing = format == "gantt"
                                  ? gantt(program, timeline, cluster, 0, gantt_width(cluster, kTimelineWidth, layout))
                                  : cut_grid(to_grid(q.one), layout);
  std::string text;
  if (q.copies) text += "two copies of the model: here they need no time to exchange gradients, nor wait for it\n";
  text += unit_text(q, asked_costs(a)) + numbers_text(report, peaks);
  if (q.search) text += to_text(*q.search, [](Seconds s) { return fmt::format("{:.10g}", s.value); }) + '\n';
  return print(drawing + wrap_lines(text + warnings_text(q.checked), layout.width)), 0;
}

std::vector<Argument> schedule_arguments() {
  using Kind = Argument::Kind;
  std::vector<Argument> list = {
      {"NAME", Kind::Text, "Name of a schedule"},
      {"-p,--ranks", Kind::Count, "Devices"},
      {"-m,--microbatches", Kind::Count, "Micro-batches in one iteration"},
      {"-v,--chunks", Kind::Count, "Stages on each device (default: the fewest that the schedule has)"},
      {"-s,--set", Kind::List, "An option of the schedule, key=value; may be repeated"},
      {"--recompute", Kind::Text, "full: each forward runs again before its backward; none (default: none)"},
      {"--file", Kind::Text, "Check and time a schedule in PyTorch's CSV text instead"},
      {"--f", Kind::Number, "Time of a forward of one micro-batch in one stage; other times are in the same unit", "1"},
      {"--b", Kind::Number, "Time of a backward (default: --i plus --w, or twice the forward)"},
      {"--i", Kind::Number, "Time of an input gradient"},
      {"--w", Kind::Number, "Time of a weight gradient"},
      {"--r", Kind::Number, "Time of a recomputation (default: the forward)"},
      {"--u", Kind::Number, "Time of an update", "0"},
      {"--comm", Kind::Number, "Time of a message between two devices", "0"},
      {"--format", Kind::Text, "grid, gantt, csv or json", "grid"}};
  for (Argument& argument : check_arguments()) list.push_back(std::move(argument));
  return with_width_arguments(std::move(list));
}

}  // namespace

extern const Command schedule{
    .name = "schedule",
    .summary = "Print and time a schedule without a scenario",
    .group = "Schedules",
    .example = "stagecraft schedule 1f1b -p 4 -m 8 --f 1 --b 2",
    .arguments = schedule_arguments(),
    .run = execute_schedule,
};

}  // namespace stagecraft::commands
