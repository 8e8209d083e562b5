#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/counted.hpp"
#include "sim/core/text.hpp"
#include "sim/report/json_files.hpp"
#include "sim/report/schedule_table.hpp"
#include "sim/report/tied.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kStreamModels = 3;
constexpr const char* kNotes =
    "\n*             no other has a shorter period in as little memory, or less memory at as short a period\n"
    "safe streams  those of messages that never block for ever, though each op receives right before it and sends\n"
    "              right behind it; with receives that are posted early, as they are simulated here, all are safe\n";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

TableCell safe_streams(const ScheduleRow& r) {
  if (!r.safe) return {"unknown", "-"};
  if (r.safe->empty()) return {"none", "none"};
  return {join(*r.safe, " "), r.safe->size() == kStreamModels ? "any" : join(*r.safe)};
}

std::string weights_text(const ScheduleRow& r) {
  return r.staleness == 0 ? "synchronous" : fmt::format("stale by up to {}", r.staleness);
}

Table printed(const ScheduleTable& table) {
  const std::vector<bool> front = pareto_front(table);
  const auto on_front = [&](const ScheduleRow& r) -> bool { return front[&r - table.rows.data()]; };
  using Row = ScheduleRow;
  TableColumns<Row> columns{
      {{.heading = " ", .gap = 0, .rows = InRows::All}, [&](const Row& r) { return on_front(r) ? "*" : " "; }},
      {{.key = "schedule",
        .heading = "schedule",
        .width = 8,
        .align = TextAlign::Left,
        .widens = true,
        .gap = 1,
        .files = InFiles::Csv,
        .rows = InRows::All},
       &Row::name},
      {{.key = "name", .files = InFiles::Json, .rows = InRows::All}, &Row::name},
      {{.key = "ran", .files = InFiles::Json, .rows = InRows::All}, &Row::ran},
      {{.key = "stages", .heading = "stages", .width = 6}, &Row::stages},
      {{.key = "makespan_s", .heading = "iteration", .width = 9}, &Row::makespan},
      {{.key = "period_s", .heading = "period", .width = 9}, &Row::period},
      {{.key = "bubble", .heading = "bubble", .width = 6},
       [](const Row& r) { return TableCell(r.bubble, percent(r.bubble)); }},
      {{.key = "steady_bubble", .heading = "steady", .width = 6},
       [](const Row& r) { return TableCell(r.steady_bubble, percent(r.steady_bubble)); }},
      {{.key = "peak_memory_bytes", .heading = "memory", .width = 9}, &Row::memory},
      {{.key = "fullest_device"}, &Row::fullest},
      {{.key = "peak_activations", .heading = "activations", .width = 11}, &Row::activations},
      {{.key = "traffic_bytes", .heading = "traffic", .width = 9}, &Row::traffic},
      {{.key = "safe_streams", .heading = "safe streams", .width = 15, .align = TextAlign::Left, .files = InFiles::Csv},
       safe_streams},
      {{.key = "safe_streams", .files = InFiles::Json}, [](const Row& r) { return r.safe ? Json(*r.safe) : Json(); }},
      {{.heading = "weights", .align = TextAlign::Left}, weights_text},
      {{.key = "staleness", .files = InFiles::Csv}, &Row::staleness},
      {{.key = "staleness_updates", .files = InFiles::Json}, &Row::staleness},
      {{.key = "pareto"}, on_front},
      {{.key = "reason", .rows = InRows::Failed, .quoted = true}, &Row::why_not},
  };
  add_replay_columns(columns, table.replay, "period_s");
  columns.push_back({{.key = "search", .files = InFiles::Json},
                     [](const Row& r) { return r.search ? TableCell(search_json(*r.search)) : TableCell(); }});
  return make_table<Row>(columns, table.rows, [](const Row& r) { return r.ran() ? "" : "- " + r.why_not; });
}

/// How much shorter its period is than that of the scenario's own schedule.
std::string against_own(const ScheduleTable& table, const ScheduleRow& r) {
  const auto own = std::find_if(table.rows.begin(), table.rows.end(),
                                [&](const ScheduleRow& o) { return o.name == table.own && o.ran(); });
  if (own == table.rows.end() || own->name == r.name || own->period.value <= 0) return {};
  const bool both = r.replayed && r.replayed->ran() && own->replayed && own->replayed->ran();
  const double change = both ? 1 - known_period(r) / known_period(*own) : 1 - r.period / own->period;
  return fmt::format(", {} {} than {}, which the scenario asks for", percent(std::abs(change)),
                     change >= 0 ? "shorter" : "longer", own->name);
}

std::string about_replay(const ScheduleTable& table) {
  if (table.rows.empty() || table.replay.rows == 0) return {};
  const ScheduleRow& first = table.rows[table.replay.was_first];
  return replay_text(table.replay, 14, first.name, first.period, first.replayed);
}

std::string answer(const ScheduleTable& table) {
  const BestRows best = best_of(table);
  if (!best.fastest) return "Nothing ran.\n";
  std::size_t width = 19;
  for (const ScheduleRow& r : table.rows)
    if (r.search && r.ran()) width = std::max(width, r.name.size());
  const auto line = [width](const char* what, const std::string& text) {
    return fmt::format("{:<{}}  {}\n", what, width, text);
  };
  const auto in_words = [&](const ScheduleRow& r) {
    const std::string on = to_text(known_period(r)) == to_text(r.period) ? "" : " on " + table.replay.backend;
    return fmt::format("{}, a period of {}{} in {}", r.name, to_text(known_period(r)), on, to_text(r.memory));
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
    if (r.search && r.ran()) text += line(r.name.c_str(), to_text(*r.search, [](Seconds t) { return to_text(t); }));
  std::vector<std::string> front;
  const std::vector<bool> marked = pareto_front(table);
  for (std::size_t i = 0; i < marked.size(); ++i)
    if (marked[i]) front.push_back(table.rows[i].name);
  text += line("best trade-offs", join(front));
  if (const std::string without = unexchanged_text(table); !without.empty()) text += line("tied weights", without);
  return text + kNotes + about_replay(table);
}

}  // namespace

std::string unexchanged_text(const ScheduleTable& table) {
  Unexchanged list;
  for (const ScheduleRow& r : table.rows) list.emplace_back(r.name, r.unexchanged);
  return unexchanged_text(list);
}

std::string to_text(const ScheduleTable& table) {
  return fmt::format("{}\n{} on {}: {}, {}; {} simulated by {}\n\n", table.title, table.model, table.cluster.name,
                     counted(table.devices, "device"), counted(table.micro_batches, "micro-batch", "es"),
                     counted(table.iterations, "iteration"), table.backend) +
         to_text(printed(table)) + "\n" + answer(table);
}

std::string schedules_csv(const ScheduleTable& table) { return to_csv(printed(table)); }

std::string schedules_json(const ScheduleTable& table) {
  const auto name = [](const ScheduleRow* r) { return r ? Json(r->name) : Json(); };
  const BestRows best = best_of(table);
  Json json = JsonObject{{"schema", "schedules/1"},
                         {"title", table.title},
                         {"model", table.model},
                         {"cluster", table.cluster.name},
                         {"backend", table.backend},
                         {"devices", table.devices},
                         {"micro_batches", table.micro_batches},
                         {"iterations", table.iterations},
                         {"scenario_schedule", table.own},
                         {"fastest_synchronous", name(best.synchronous)},
                         {"fastest", name(best.fastest)},
                         {"least_memory", name(best.smallest)}};
  if (table.replay.asked()) json["replay"] = replay_json(table.replay);
  json["schedules"] = to_json(printed(table));
  return json.dump(2);
}

}  // namespace stagecraft
