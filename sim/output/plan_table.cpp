// The table of `stagecraft plan`, a row for each planner, as text, CSV and JSON with the fields of both, and the order
// of its rows.

#include "sim/output/plan_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/result_columns.hpp"
#include "sim/output/run_row.hpp"

namespace stagecraft {
namespace {

std::string time_text(Seconds t) { return t.value > 0 ? to_text(t) : "-"; }

/// How far a time is above a bound; sums in another order are not.
std::string above_text(Seconds time, Seconds bound) {
  if (time.value <= 0 || bound.value <= 0) return "-";
  double percent = 100 * (time / bound - 1);
  if (std::abs(percent) < 1e-6) percent = 0;
  return two_digits(percent) + " %";
}

/// Whether a planner promises much less time than its plan takes.
bool is_broken_promise(const PlanRow& r) {
  constexpr double kMuch = 1.1;
  return r.ran() && r.predicted.value > 0 && r.each > kMuch * r.predicted;
}

std::string off_text(const PlanRow& r) {
  if (r.predicted.value <= 0) return "-";
  return fmt::format("{}{:+.1f} %", is_broken_promise(r) ? "! " : "", 100 * (r.each / r.predicted - 1));
}

/// Each such bound with the planners that it is for: plans with other micro-batches, or of another kind, have others.
std::string least_text(const PlanTable& table) {
  std::vector<std::pair<std::string, std::string>> bounds;
  for (const PlanRow& r : table.rows) {
    if (!r.ran() || r.time_bound.value <= 0) continue;
    const std::string bound = fmt::format("{:<9}  {}", to_text(r.time_bound), r.time_bound_reason);
    auto it = std::find_if(bounds.begin(), bounds.end(), [&](const auto& b) { return b.first == bound; });
    if (it == bounds.end())
      bounds.emplace_back(bound, r.planner);
    else
      it->second += ", " + r.planner;
  }
  std::string text;
  for (const auto& [bound, planners] : bounds) text += fmt::format("           {}: {}\n", bound, planners);
  return text;
}

std::string about_replay(const PlanTable& table) {
  if (table.replay.rows == 0) return {};
  const PlanRow& first = table.rows[table.replay.was_first];
  return replay_text(table.replay, 11, first.planner, first.period, first.replayed);
}

/// A bound or prediction that is not known is 0 in CSV and null in JSON.
Json positive_json(Seconds t) { return t.value > 0 ? Json(t.value) : Json(); }

/// Planners without a plan, all for one reason.
struct PlannersWithout {
  std::string reason;
  std::vector<std::string> planners;
};

/// Several planners that refuse for one reason are one line below the table, not a row each.
std::vector<PlannersWithout> take_common_reasons(PlanTable& table) {
  const auto reason_of = [](const PlanRow& r) {
    const std::string subject = fmt::format("the planner '{}' ", r.planner);
    return r.why_not.starts_with(subject) ? "such a planner " + r.why_not.substr(subject.size()) : r.why_not;
  };
  std::vector<PlannersWithout> groups;
  for (const PlanRow& r : table.rows) {
    if (r.ran()) continue;
    const std::string reason = reason_of(r);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.reason == reason; });
    if (same == groups.end())
      groups.push_back({reason, {r.planner}});
    else
      same->planners.push_back(r.planner);
  }
  std::erase_if(groups, [](const PlannersWithout& g) { return g.planners.size() == 1; });
  std::erase_if(table.rows, [&](const PlanRow& r) {
    return std::any_of(groups.begin(), groups.end(), [&](const PlannersWithout& g) {
      return std::find(g.planners.begin(), g.planners.end(), r.planner) != g.planners.end();
    });
  });
  return groups;
}

TableColumns<PlanRow> plan_columns() {
  using Row = PlanRow;
  return {
      {{.key = result_column("planner"),
        .heading = "planner",
        .width = 7,
        .align = TextAlign::Left,
        .widens = true,
        .rows = InRows::All},
       &Row::planner},
      {{.key = result_column("ran"), .files = InFiles::Json, .rows = InRows::All}, &Row::ran},
      {{.key = result_column("schedule"), .heading = "schedule", .width = 9, .align = TextAlign::Left, .drop_order = 2},
       &Row::schedule},
      {{.heading = "plan", .width = 4, .align = TextAlign::Left, .widens = true, .drop_order = 3}, &Row::plan_words},
      figure_column<Row>("stages", &Row::stages),
      figure_column<Row>("devices", &Row::devices, {.width = 7, .drop_order = 4}),
  };
}

/// A micro-batch in the planner's own model, in simulation and at its lower bound.
TableColumns<PlanRow> micro_batch_columns() {
  using Row = PlanRow;
  return {
      {{.key = result_column("predicted_s"),
        .heading = "predicted",
        .width = 9,
        .drop_order = 7,
        .files = InFiles::Csv},
       [](const Row& r) { return TableCell(r.predicted.value, time_text(r.predicted)); }},
      {{.key = result_column("predicted_s"), .files = InFiles::Json},
       [](const Row& r) { return positive_json(r.predicted); }},
      {{.key = result_column("model_limit_s"),
        .heading = "model's limit",
        .width = 13,
        .drop_order = 10,
        .files = InFiles::Csv},
       [](const Row& r) { return TableCell(r.model_limit.value, time_text(r.model_limit)); }},
      {{.key = result_column("model_limit_s"), .files = InFiles::Json},
       [](const Row& r) { return positive_json(r.model_limit); }},
      {{.key = result_column("model_limit_reason"), .files = InFiles::Json}, &Row::limit_reason},
      {{.key = result_column("heuristic"), .files = InFiles::Json}, &Row::heuristic},
      {{.key = result_column("lower_bound_s"), .files = InFiles::Json},
       [](const Row& r) { return positive_json(r.time_bound); }},
      {{.key = result_column("lower_bound_reason"), .files = InFiles::Json}, &Row::time_bound_reason},
      {{.heading = "gap", .width = 6, .drop_order = 8},
       [](const Row& r) { return above_text(r.predicted, r.model_limit); }},
      {{.key = result_column("simulated_s"), .heading = "simulated", .width = 9, .drop_order = 6}, &Row::each},
      {{.heading = "off", .width = 8, .widens = true, .drop_order = 5}, off_text},
      {{.heading = "room", .width = 6, .drop_order = 1}, [](const Row& r) { return above_text(r.each, r.time_bound); }},
  };
}

TableColumns<PlanRow> simulation_columns(const PlanTable& table) {
  using Row = PlanRow;
  return {
      period_column<Row>(table.interval),
      figure_column<Row>("throughput_samples_per_s", &Row::throughput, {.width = 10}),
      figure_column<Row>("makespan_s", &Row::makespan),
      memory_column<Row>(),
      {{.key = result_column("states"), .heading = "states", .width = 8, .drop_order = 11}, &Row::states},
      {{.key = result_column("search_s"), .heading = "search", .width = 9, .drop_order = 9},
       [](const Row& r) { return Seconds{r.seconds}; }},
      {{.key = result_column("lower_bound_s"), .files = InFiles::Csv}, [](const Row& r) { return r.time_bound.value; }},
      {{.key = result_column("change"), .files = InFiles::Json}, &Row::change},
      {{.key = result_column("set"), .files = InFiles::Json}, [](const Row& r) { return Json(r.sets); }},
      {{.key = result_column("plan")}, &Row::plan_words},
      {{.key = result_column("reason"), .rows = InRows::Failed, .quoted = true}, &Row::why_not},
  };
}

Table printed(const PlanTable& table, bool every_column = false) {
  using Row = PlanRow;
  TableColumns<Row> columns = joined_columns<Row>({plan_columns(), micro_batch_columns(), simulation_columns(table)});
  add_replay_columns(columns, table.replay, "makespan_s");
  add_budget_columns(columns, table.rows, {.every_column = every_column});
  return make_table<Row>(columns, table.rows, [](const Row& r) { return r.ran() ? "" : "- " + r.why_not; });
}

std::string table_text(PlanTable table, const TextLayout& layout) {
  const std::vector<PlannersWithout> groups = take_common_reasons(table);
  std::string text = table.rows.empty() ? "" : to_text(printed(table), layout);
  for (const PlannersWithout& group : groups)
    text += wrap_lines(fmt::format("  no plan from {}: {}\n", join(group.planners), group.reason), layout.width);
  return text;
}

}  // namespace

void sort_rows(PlanTable& table) {
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const PlanRow& a, const PlanRow& b) {
    if (a.ran() != b.ran()) return a.ran();
    if (!a.ran()) return a.planner < b.planner;
    return a.period < b.period;
  });
  order_by_replay(table.rows, table.replay, [](const ContendedResult& r) { return r.period; });
}

Table rows_of(const PlanTable& table) { return printed(table); }

std::string to_text(const PlanTable& table, const TextLayout& layout) {
  const std::string head = fmt::format("{}\n{} on {}: {}, {}\n\n", table.title, table.model, table.cluster,
                                       table.schedule, pluralize(table.micro_batches, "micro-batch", "es"));
  std::string text =
      "\npredicted  one micro-batch in the steady state, by the planner's own model\n"
      "gap        how far that is above the model's limit: no plan of its kind beats it in that model, but in "
      "simulation one may\n"
      "simulated  the same with messages, memory and the schedule; off: how far from the prediction; period: one "
      "iteration\n"
      "room       how far the simulated time is above its lower bound, which no plan with such micro-batches can beat, "
      "whoever makes it\n";
  if (std::any_of(table.rows.begin(), table.rows.end(), is_broken_promise))
    text +=
        "!          more than 10 % longer than the planner's own model says, which may leave out fill and drain, "
        "latency, slow links and messages that wait for each other\n";
  text += table.reserve;
  text += budget_text({table.rows.begin(), table.rows.end()}, {}) + interval_line(table.interval) + least_text(table) +
          about_replay(table);
  for (const PlanRow& r : table.rows)
    if (!r.heuristic.empty()) text += fmt::format("{} is a heuristic here: {}\n", r.planner, r.heuristic);
  for (const PlanRow& r : table.rows)
    if (!r.change.empty())
      text += fmt::format("{} does not fit in memory as the scenario has it, but with {}\n", r.planner, r.change);
  if (!table.rows.empty()) text += to_text(table.diagnosis, table.rows.front().planner);
  for (const PlanRow& r : table.rows)
    if (!r.plan.empty()) text += fmt::format("\n{}\n{}", r.planner, r.plan);
  return wrap_lines(head, layout.width) + table_text(table, layout) + wrap_lines(text, layout.width);
}

std::string plans_csv(const PlanTable& table) { return to_csv(printed(table)); }

std::string plans_json(const PlanTable& table) {
  Json json = JsonObject{{"schema", "plans/1"},
                         {"title", table.title},
                         {"model", table.model},
                         {"cluster", table.cluster},
                         {"schedule", table.schedule},
                         {"micro_batches", table.micro_batches},
                         {"plans", to_json(printed(table))}};
  if (table.interval) json["interval"] = interval_json(*table.interval);
  if (table.replay.asked()) json["replay"] = replay_json(table.replay);
  if (!table.diagnosis.findings.empty()) json["diagnosis"] = diagnosis_json(table.diagnosis);
  return json.dump(2);
}

namespace {

/// A table without rows, with all columns that it may have.
Table empty_plan_table() {
  PlanTable table;
  table.replay.backend = kReplayBackend;
  return printed(table, true);
}

}  // namespace

std::vector<FileColumn> plans_columns() { return csv_columns(empty_plan_table()); }

const config::MapSpec& plans_fields() {
  using namespace config;
  static const MapSpec row = json_row(empty_plan_table(), "The plan of one planner.");
  static const MapSpec spec{
      .title = "What `stagecraft plan --format json` prints: planners on one scenario.",
      .fields = {choice("schema", {"plans/1"}).doc("Version of this format."),
                 text("title").doc("Title of the scenario."), text("model").doc("Name of the model."),
                 text("cluster").doc("Name of the cluster."), text("schedule").doc("Schedule of the scenario."),
                 integer("micro_batches", 0, kInfinity).doc("Micro-batches of an iteration."),
                 list("plans", map("plan", row)).positional().doc("The plans, shortest period first."),
                 interval_field(), replay_field(), diagnosis_field()}};
  return spec;
}

}  // namespace stagecraft
