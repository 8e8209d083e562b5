// Columns that the CSV and JSON of several tables have (times, settings, reasons, and each metric), each with unit and
// meaning under one name; the tables of plans, choices, schedules and sweeps take them from here.

#include "sim/output/result_columns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/output/json_files.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

const std::vector<FileColumn>& time_columns() {
  static const std::vector<FileColumn> columns{
      number_column("simulated_s", "s", "Simulated period of one micro-batch."),
      or_null(number_column("predicted_s", "s",
                            "Time of one micro-batch in the planner's own model; unknown: 0 in CSV, null in JSON.")),
      or_null(number_column("model_limit_s", "s",
                            "No plan of its kind takes less for one micro-batch in the planner's own model; simulated "
                            "times may be below it. Unknown: 0 in CSV, null in JSON.")),
      word_column("model_limit_reason", "What gives model_limit_s."),
      word_column("heuristic", "How the planner searched where a plan of its kind may be better; empty where none is."),
      or_null(number_column("lower_bound_s", "s",
                            "Lower bound of the simulated time of one micro-batch, for every plan with micro-batches "
                            "of this size; unknown: 0 in CSV, null in JSON.")),
      word_column("lower_bound_reason", "What gives lower_bound_s."),
      number_column("search_s", "s", "Wall-clock time of the planner's search."),
      whole_column("states", "States that the planner's search visited."),
  };
  return columns;
}

const std::vector<FileColumn>& memory_columns() {
  static const std::vector<FileColumn> columns{
      word_column("fullest_device", "Name of the device with the highest peak memory."),
  };
  return columns;
}

const std::vector<FileColumn>& setting_columns() {
  using namespace config;
  static const std::vector<FileColumn> columns{
      word_column("schedule", "Name of the schedule."),
      word_column("name", "Name of the schedule."),
      word_column("planner", "Name of the planner."),
      word_column("plan",
                  "The plan as training frameworks count it: TP tensor, CP context, EP expert and ETP expert-tensor "
                  "parallelism, PP pipeline ranks x VPP stages of each, DP replicas, ZeRO level, MBS samples of a "
                  "micro-batch of a replica x micro-batches of a replica in an iteration."),
      word_column("placement", "Placement of the stages on the devices."),
      word_column("weights", "Name of the weights policy."),
      word_column("recompute", "What backward recomputes: none, selective, half, outputs, layers or full."),
      word_column("group",
                  "How each replica and its states are divided: TP tensor, CP context, EP expert and ETP expert-tensor "
                  "parallelism, ZeRO-1 the optimizer, ZeRO-2 gradients too, ZeRO-3 weights too; empty: not at all."),
      whole_column("replicas", "Replicas of each stage."),
      whole_column("micro_batches", "Micro-batches of an iteration."),
      whole_column("micro_batch_size", "Samples of a micro-batch."),
      word_column("change", "Options that make the plan fit in memory; empty where nothing had to change."),
      nested_column(list("set", text("option")), "Options path=value that turn the scenario into this row."),
  };
  return columns;
}

const std::vector<FileColumn>& verdict_columns() {
  using namespace config;
  static const std::vector<FileColumn> columns{
      yes_column("ran", "Whether it could run."),
      word_column("reason", "Why there are no results."),
      word_column("bottleneck", "What limits the schedule."),
      word_column("limited_by",
                  "The cause that costs most time, and where it is, as in the diagnosis of a run; empty "
                  "where the program is too large to diagnose."),
      word_column(
          "remark",
          "tight: less memory is free than the margin of the search; tie: the time differs from the first row's "
          "by less than the interval of simulated times; least memory within 2 %: of the rows within 2 % of the "
          "first, this one has the most free memory; empty: none of these."),
      word_column("behind", "Why the row is behind the first, and what it needs less; empty for the first."),
      word_column("safe_streams",
                  "Arrangements of message streams (single, pair, direction) with which no rank blocks forever, with a "
                  "space between; none or unknown."),
      whole_column("staleness", "Most updates between the weights of a gradient and those that it is applied to."),
      whole_column("staleness_updates",
                   "Most updates between the weights of a gradient and those that it is applied to."),
      yes_column("pareto",
                 "Whether no other row has a shorter period in as little memory, or less memory at as short "
                 "a period."),
      only(nested_column(map("search", search_fields()), "How the schedule was found."),
           "for schedules that are searched for"),
  };
  return columns;
}

}  // namespace

FileColumn result_column(std::string_view name) {
  for (const auto* columns : {&time_columns(), &memory_columns(), &setting_columns(), &verdict_columns()})
    for (const FileColumn& c : *columns)
      if (c.name() == name) return c;
  if (const Metric* m = find_metric(name)) return metric_column(*m);
  throw InternalError(fmt::format("no column '{}'", name));
}

TableCell figure_cell(const Metric& m, double value) {
  const Json json = !std::isfinite(value) ? Json()
                    : is_whole(m.unit)    ? Json(static_cast<std::int64_t>(value))
                                          : Json(value);
  return {json, to_text(m, value)};
}

}  // namespace stagecraft
