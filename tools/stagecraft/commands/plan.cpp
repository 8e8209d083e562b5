// `stagecraft plan`: runs planners on a scenario and simulates their plans (sim/search/plan_table), diagnoses the best
// one, and prints the table; after Ctrl-C with the plans that were complete.

#include <algorithm>

#include <fmt/core.h>

#include "sim/published/error_classes.hpp"
#include "sim/search/plan_table.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/row_diagnosis.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kNoneRan = 3;

/// Usual value of --replay: all plans run again on `fluid`.
constexpr const char* kPlanReplay = "all";

/// Says what limits the best plan. Plans that took long to search for are not searched for again with each change.
void diagnose_first(const Arguments& a, const PlansByPlanner& plans, PlanTable& table) {
  constexpr double kLong = 1;
  const PlanRow& first = table.rows.front();
  const bool contended = first.ran_contended();
  const Diagnosis d =
      diagnose_row(a.text("FILE"), a.list("set"), first.sets, contended ? table.replay.backend : a.text("backend"),
                   first.seconds > kLong ? WhatIf::First : WhatIf::Row, plans.at(first.planner).get());
  table.diagnosis = with_sets_before(d, first.sets);
}

int execute_plan(const Arguments& a) {
  const std::string format = a.text("format");
  check_table_format(a, {"text", "csv", "json", "markdown"});
  const TextLayout layout = layout_of(a);
  const PlanTableOptions options{.planners = a.text("planner"),
                                 .backend = a.text("backend"),
                                 .show = a.flag("show") && format == "text",
                                 .replay = replay_rows(a, a.text("backend"), kPlanReplay),
                                 .time = time_limit(a),
                                 .stop = NotedInterrupt::came};
  const Experiment experiment = load_experiment(a.text("FILE"), a.list("set"));
  const NotedInterrupt noted;
  PlansByPlanner plans;
  PlanTable table = compare_plans(experiment, options, &plans);
  const bool has_plan = !table.rows.empty() && table.rows.front().ran();
  if (NotedInterrupt::came() && !has_plan) {
    print_error("{} before the first plan was complete; nothing was kept\n", NotedInterrupt::word());
    return NotedInterrupt::exit_code();
  }
  table.interval = prediction_interval(experiment);
  if (has_plan && !NotedInterrupt::came()) diagnose_first(a, plans, table);
  for (const std::string& note : table.notes) print_error("note: {}\n", note);
  if (format == "text")
    print_text(to_text(table, layout), layout);
  else
    print(format == "json" ? plans_json(table) + "\n" : table_in_format(rows_of(table), format, layout));
  if (!NotedInterrupt::came()) return has_plan ? 0 : kNoneRan;
  flush();
  const auto complete = std::count_if(table.rows.begin(), table.rows.end(), [](const PlanRow& r) { return r.ran(); });
  print_error("{}; the table has {}\n", NotedInterrupt::word(), pluralize(complete, "plan"));
  return NotedInterrupt::exit_code();
}

}  // namespace

extern const Command plan{
    .name = "plan",
    .summary = "Compare planners: predicted time, simulated time and lower bound",
    .group = "Plan",
    .example = "stagecraft plan scenarios/examples/quickstart.yaml --planner all --show",
    .arguments = with_table_arguments(
        {{"FILE", Argument::Kind::Text, "Scenario", {}, true},
         {"--planner", Argument::Kind::Text, "all, or names with commas between: stagecraft list planners", "all"},
         {"-b,--backend", Argument::Kind::Text, "Backend that simulates the plans", "ideal"},
         replay_argument(kPlanReplay),
         {"--time", Argument::Kind::Text,
          "Longest time that one planner computes, with the simulation of its plan, before it is stopped: 60s, 5min",
          "60s"},
         {"-s,--set", Argument::Kind::List, "path=value, such as run.micro_batches=16; may be repeated"},
         {"--show", Argument::Kind::Flag, "Print the plans too"},
         quiet_argument(),
         {"--format", Argument::Kind::Text, "text, csv, json, markdown or latex", "text"}}),
    .run = execute_plan,
};

}  // namespace stagecraft::commands
