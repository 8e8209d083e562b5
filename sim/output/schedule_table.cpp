// The table of `compare --schedules` as text, CSV and JSON with the fields of both: order of the rows, Pareto front,
// and the answer in words below it.

#include "sim/output/schedule_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "sim/cluster/memory_reserve.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/output/json_files.hpp"
#include "sim/output/result_columns.hpp"
#include "sim/output/text.hpp"

namespace stagecraft {
namespace {

double nine_digits(double value) { return std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr); }
double period_of(const ScheduleRow& r) { return nine_digits(r.period.value); }
double known_period_of(const ScheduleRow& r) { return nine_digits(known_period(r).value); }
double memory_of(const ScheduleRow& r) { return nine_digits(r.memory.value); }

double key_of(const ScheduleRow& r, SortKey key) {
  switch (key) {
    case SortKey::Time:
      return nine_digits(r.makespan.value);
    case SortKey::Period:
      return period_of(r);
    case SortKey::Memory:
      return memory_of(r);
    case SortKey::Traffic:
      return r.traffic.value;
  }
  return 0;
}

/// The row with the smallest `key` among those that ran and that `counts` accepts.
template <class Accepts, class Key>
const ScheduleRow* best_row(const ScheduleTable& table, Accepts&& accepts, Key&& key) {
  const ScheduleRow* best = nullptr;
  for (const ScheduleRow& r : table.rows)
    if (r.ran() && accepts(r) && (!best || key(r) < key(*best))) best = &r;
  return best;
}

}  // namespace

SortKey parse_sort_key(std::string_view word) {
  const std::vector<std::string> words{"time", "period", "memory", "traffic"};
  const auto at = std::find(words.begin(), words.end(), word);
  if (at == words.end()) throw InputError(fmt::format("--by: '{}' is not known here", word), suggest(word, words));
  return static_cast<SortKey>(at - words.begin());
}

void sort_rows(ScheduleTable& table, SortKey key) {
  const auto rank = [&](const ScheduleRow& r) {
    return r.ran() ? std::tuple(0, key_of(r, key), period_of(r), nine_digits(r.makespan.value),
                                std::string_view(r.schedule))
                   : std::tuple(1, 0.0, 0.0, 0.0, std::string_view(r.schedule));
  };
  std::sort(table.rows.begin(), table.rows.end(),
            [&](const ScheduleRow& a, const ScheduleRow& b) { return rank(a) < rank(b); });
  if (key == SortKey::Time)
    order_by_replay(table.rows, table.replay, [](const ContendedResult& r) { return r.makespan; });
  if (key == SortKey::Period)
    order_by_replay(table.rows, table.replay, [](const ContendedResult& r) { return r.period; });
}

std::vector<bool> pareto_front(const ScheduleTable& table) {
  const bool all_replayed = std::all_of(table.rows.begin(), table.rows.end(),
                                        [](const ScheduleRow& r) { return !r.ran() || (r.ran_contended()); });
  const auto time_of = [&](const ScheduleRow& r) { return all_replayed ? known_period_of(r) : period_of(r); };
  const auto beats = [&](const ScheduleRow& a, const ScheduleRow& b) {
    const double period_a = time_of(a), period_b = time_of(b), memory_a = memory_of(a), memory_b = memory_of(b);
    return period_a <= period_b && memory_a <= memory_b && (period_a < period_b || memory_a < memory_b);
  };
  std::vector<bool> front;
  for (const ScheduleRow& r : table.rows)
    front.push_back(r.ran() && std::none_of(table.rows.begin(), table.rows.end(),
                                            [&](const ScheduleRow& other) { return other.ran() && beats(other, r); }));
  return front;
}

BestRows best_of(const ScheduleTable& table) {
  const auto any = [](const ScheduleRow&) { return true; };
  const auto by_period = [](const ScheduleRow& r) {  // Rows with contention were the shortest without.
    const int unknown = !r.replayed ? 1 : r.replayed->ran() ? 0 : 2;
    return std::tuple(unknown, known_period_of(r), memory_of(r), std::string_view(r.schedule));
  };
  const auto by_memory = [](const ScheduleRow& r) {
    return std::tuple(memory_of(r), period_of(r), std::string_view(r.schedule));
  };
  return {best_row(
              table, [](const ScheduleRow& r) { return r.staleness == 0; }, by_period),
          best_row(table, any, by_period), best_row(table, any, by_memory)};
}

std::vector<Strip> strips_of(const ScheduleTable& table) {
  std::vector<Strip> strips;
  for (const ScheduleRow& r : table.rows) {
    if (!r.drawing) continue;
    // What is drawn is what the table ranks by.
    const bool contended = r.ran_contended() && r.drawing->contended;
    strips.push_back(
        {fmt::format("{}: period {}{}, memory {}", r.schedule, to_text(contended ? known_period(r) : r.period),
                     contended ? " on " + table.replay.backend : "", to_text(r.memory)),
         r.drawing->program, contended ? *r.drawing->contended : r.drawing->timeline});
  }
  return strips;
}

namespace {

constexpr std::size_t kStreamModels = 3;
constexpr const char* kNotes =
    "\n*             no other has a shorter period in as little memory, or less memory at as short a period\n"
    "no deadlock   message streams with which no rank blocks forever when each op receives right before it and sends "
    "right after it (schedule --streams single --messages just-in-time checks the same). The simulation posts receives "
    "early, so it never blocks\n";

TableCell safe_streams(const ScheduleRow& r) {
  if (!r.safe) return {"unknown", "-"};
  if (r.safe->empty()) return {"none", "none"};
  return {join(*r.safe, " "), r.safe->size() == kStreamModels ? "any" : join(*r.safe)};
}

/// safe_streams in JSON.
FileColumn safe_streams_list() {
  return or_null(nested_column(config::list("safe_streams", config::text("streams")),
                               "Arrangements of message streams (single, pair, direction) with which no rank blocks "
                               "forever; null where that is not known."));
}

std::string weights_text(const ScheduleRow& r) {
  return r.staleness == 0 ? "synchronous" : fmt::format("stale by up to {}", r.staleness);
}

TableColumns<ScheduleRow> amount_columns(const ScheduleTable& table) {
  using Row = ScheduleRow;
  return {
      figure_column<Row>("makespan_s", &Row::makespan, {.width = 9, .drop_order = 3}),
      period_column<Row>(table.interval),
      figure_column<Row>("bubble", &Row::bubble, {.width = 6, .drop_order = 1}),
      figure_column<Row>("steady_bubble", &Row::steady_bubble, {.width = 12, .drop_order = 4}),
      memory_column<Row>(),
      {{.key = result_column("fullest_device")}, &Row::fullest},
      figure_column<Row>("peak_activations", &Row::activations, {.width = 11, .drop_order = 8}),
      figure_column<Row>("traffic_bytes", &Row::traffic, {.width = 9, .drop_order = 7}),
  };
}

/// What a schedule asks of messages, and what it does to weights.
TableColumns<ScheduleRow> property_columns() {
  using Row = ScheduleRow;
  return {
      {{.key = result_column("safe_streams"),
        .heading = "no deadlock",
        .width = 15,
        .align = TextAlign::Left,
        .drop_order = 6,
        .files = InFiles::Csv},
       safe_streams},
      {{.key = safe_streams_list(), .files = InFiles::Json},
       [](const Row& r) { return r.safe ? Json(*r.safe) : Json(); }},
      {{.key = result_column("bottleneck"),
        .heading = "bottleneck",
        .width = 22,
        .align = TextAlign::Left,
        .widens = true,
        .drop_order = 9},
       &Row::bottleneck},
      {{.heading = "weights", .align = TextAlign::Left}, weights_text},
      {{.key = result_column("staleness"), .files = InFiles::Csv}, &Row::staleness},
      {{.key = result_column("staleness_updates"), .files = InFiles::Json}, &Row::staleness},
  };
}

Table printed(const ScheduleTable& table) {
  const std::vector<bool> front = pareto_front(table);
  const auto on_front = [&](const ScheduleRow& r) -> bool { return front[&r - table.rows.data()]; };
  using Row = ScheduleRow;
  const TableColumns<Row> names{
      {{.heading = " ", .gap = 0, .rows = InRows::All}, [&](const Row& r) { return on_front(r) ? "*" : " "; }},
      {{.key = result_column("schedule"),
        .heading = "schedule",
        .width = 8,
        .align = TextAlign::Left,
        .widens = true,
        .gap = 1,
        .files = InFiles::Csv,
        .rows = InRows::All},
       &Row::schedule},
      {{.key = result_column("name"), .files = InFiles::Json, .rows = InRows::All}, &Row::schedule},
      {{.key = result_column("ran"), .files = InFiles::Json, .rows = InRows::All}, &Row::ran},
      figure_column<Row>("stages", &Row::stages, {.width = 6, .drop_order = 5}),
  };
  TableColumns<Row> columns = joined_columns<Row>({names, amount_columns(table), property_columns()});
  columns.push_back({{.key = result_column("pareto")}, on_front});
  columns.push_back({{.key = result_column("plan")}, &Row::plan_words});
  columns.push_back({{.key = result_column("reason"), .rows = InRows::Failed, .quoted = true}, &Row::why_not});
  add_replay_columns(columns, table.replay, "period_s");
  columns.push_back({{.key = result_column("search"), .files = InFiles::Json},
                     [](const Row& r) { return r.search ? TableCell(search_json(*r.search)) : TableCell(); }});
  return make_table<Row>(columns, table.rows, [](const Row& r) { return r.ran() ? "" : "- " + r.why_not; });
}

/// How much shorter its period is than the period of the scenario's own schedule.
std::string against_own(const ScheduleTable& table, const ScheduleRow& r) {
  const auto configured = std::find_if(table.rows.begin(), table.rows.end(),
                                       [&](const ScheduleRow& o) { return o.schedule == table.configured && o.ran(); });
  if (configured == table.rows.end() || configured->schedule == r.schedule || configured->period.value <= 0) return {};
  const bool both = r.ran_contended() && configured->ran_contended();
  const double change = both ? 1 - known_period(r) / known_period(*configured) : 1 - r.period / configured->period;
  return fmt::format(", {} {} than {}, which the scenario asks for", percent(std::abs(change)),
                     change >= 0 ? "shorter" : "longer", configured->schedule);
}

std::string about_replay(const ScheduleTable& table) {
  if (table.rows.empty() || table.replay.rows == 0) return {};
  const ScheduleRow& first = table.rows[table.replay.was_first];
  return replay_text(table.replay, 14, first.schedule, first.period, first.replayed);
}

/// The number of stages that other rows than the scenario's own have, with the option that makes `run` do so, too.
std::string stages_text(const ScheduleTable& table) {
  if (table.stages == 0) return {};
  std::map<int, std::vector<std::string>> names;
  for (const ScheduleRow& r : table.rows)
    if (r.ran() && r.stages != table.stages) names[r.stages].push_back(r.schedule);
  std::string text;
  for (const auto& [stages, with] : names)
    text += fmt::format(
        "{}     not {} as in the scenario, so that each device has as many as the schedule "
        "needs; run does so with --set plan.stages={}: {}\n",
        pluralize(stages, "stage"), table.stages, stages, join(with));
  return text;
}

std::string answer(const ScheduleTable& table) {
  const BestRows best = best_of(table);
  if (!best.fastest) return "Nothing ran.\n";
  std::size_t width = 19;
  for (const ScheduleRow& r : table.rows)
    if (r.search && r.ran()) width = std::max(width, r.schedule.size());
  const auto line = [width](const char* what, const std::string& text) {
    return fmt::format("{:<{}}  {}\n", what, width, text);
  };
  const auto in_words = [&](const ScheduleRow& r) {
    const std::string on = to_text(known_period(r)) == to_text(r.period) ? "" : " on " + table.replay.backend;
    return fmt::format("{}, a period of {}{} in {}", r.schedule, to_text(known_period(r)), on, to_text(r.memory));
  };
  std::string text =
      line("fastest synchronous", best.synchronous ? in_words(*best.synchronous) + against_own(table, *best.synchronous)
                                                   : "none, all have stale weights");
  if (best.fastest != best.synchronous)
    text += line("fastest of all",
                 fmt::format("{}; its weights are {}", in_words(*best.fastest), weights_text(*best.fastest)));
  else
    text += line("fastest of all", "the same");
  text += line("least memory", in_words(*best.smallest));
  for (const ScheduleRow& r : table.rows)
    if (r.search && r.ran()) text += line(r.schedule.c_str(), to_text(*r.search, [](Seconds t) { return to_text(t); }));
  std::vector<std::string> front;
  const std::vector<bool> marked = pareto_front(table);
  for (std::size_t i = 0; i < marked.size(); ++i)
    if (marked[i]) front.push_back(table.rows[i].schedule);
  text += line("best trade-offs", join(front));
  if (const std::string without = unexchanged_text(table); !without.empty()) text += line("tied weights", without);
  return text + kNotes + stages_text(table) + reserve_line(table.cluster) + interval_line(table.interval) +
         about_replay(table);
}

}  // namespace

std::string unexchanged_text(const ScheduleTable& table) { return unexchanged_text_of(table.rows); }

Table rows_of(const ScheduleTable& table) { return printed(table); }

std::string to_text(const ScheduleTable& table, const TextLayout& layout) {
  const std::string head = fmt::format("{}\n{} on {} of {}: {}; {} simulated by {}\n\n", table.title, table.model,
                                       pluralize(table.devices, "device"), table.cluster.name, table.plan,
                                       pluralize(table.iterations, "iteration"), table.backend);
  std::string below = "\n" + answer(table);
  if (!table.not_compared.empty()) below += fmt::format("not compared: {}\n", join(table.not_compared));
  return wrap_lines(head, layout.width) + to_text(printed(table), layout) + wrap_lines(below, layout.width);
}

std::string schedules_csv(const ScheduleTable& table) { return to_csv(printed(table)); }

std::string schedules_json(const ScheduleTable& table) {
  const auto name = [](const ScheduleRow* r) { return r ? Json(r->schedule) : Json(); };
  const BestRows best = best_of(table);
  Json json = JsonObject{{"schema", "schedules/1"},
                         {"title", table.title},
                         {"model", table.model},
                         {"cluster", table.cluster.name},
                         {"backend", table.backend},
                         {"devices", table.devices},
                         {"plan", table.plan},
                         {"micro_batches", table.micro_batches},
                         {"iterations", table.iterations},
                         {"scenario_schedule", table.configured},
                         {"fastest_synchronous", name(best.synchronous)},
                         {"fastest", name(best.fastest)},
                         {"least_memory", name(best.smallest)}};
  if (table.interval) json["interval"] = interval_json(*table.interval);
  if (table.replay.asked()) json["replay"] = replay_json(table.replay);
  json["schedules"] = to_json(printed(table));
  if (!table.not_compared.empty()) json["not_compared"] = table.not_compared;
  return json.dump(2);
}

namespace {

/// A table without rows, with all columns that it may have.
Table empty_schedule_table() {
  ScheduleTable table;
  table.replay.backend = kReplayBackend;
  return printed(table);
}

}  // namespace

std::vector<FileColumn> schedules_columns() { return csv_columns(empty_schedule_table()); }

const config::MapSpec& schedules_fields() {
  using namespace config;
  static const MapSpec row = json_row(empty_schedule_table(), "One schedule.");
  static const MapSpec spec{
      .title = "What `stagecraft compare --schedules --format json` prints: schedules on one scenario.",
      .fields = {choice("schema", {"schedules/1"}).doc("Version of this format."),
                 text("title").doc("Title of the scenario."), text("model").doc("Name of the model."),
                 text("cluster").doc("Name of the cluster."), text("backend").doc("Backend that simulated the rows."),
                 integer("devices", 0, kInfinity).doc("Devices of the scenario's plan."),
                 text("plan").doc("The scenario's plan as training frameworks count it, and its samples."),
                 integer("micro_batches", 0, kInfinity).doc("Micro-batches of an iteration."),
                 integer("iterations", 0, kInfinity).doc("Simulated iterations."),
                 text("scenario_schedule").doc("The schedule that the scenario asks for."),
                 text("fastest_synchronous").nullable().doc("Shortest period without stale weights; null: none ran."),
                 text("fastest").nullable().doc("Shortest period of all; null: none ran."),
                 text("least_memory").nullable().doc("Least memory; null: none ran."), interval_field(), replay_field(),
                 list("schedules", map("schedule", row)).positional().doc("One entry for each schedule, as sorted."),
                 list("not_compared", text("schedule"))
                     .optional()
                     .doc("Schedules without an entry, because Ctrl-C came first.")}};
  return spec;
}

}  // namespace stagecraft
