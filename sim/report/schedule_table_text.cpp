#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/counted.hpp"
#include "sim/core/text.hpp"
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

std::string safe_text(const ScheduleRow& r) {
  if (!r.safe) return "-";
  if (r.safe->empty()) return "none";
  return r.safe->size() == kStreamModels ? "any" : join(*r.safe);
}

std::string weights_text(const ScheduleRow& r) {
  return r.staleness == 0 ? "synchronous" : fmt::format("stale by up to {}", r.staleness);
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

/// A column of its own, where rows were played again.
std::string replay_column(const ScheduleTable& table, const std::string& text) {
  return table.replay.asked() ? fmt::format("  {:>9}", text) : std::string();
}

std::string row_text(const ScheduleTable& table, const ScheduleRow& r, bool best, std::size_t width) {
  if (!r.ran()) return fmt::format("  {:<{}}  - {}\n", r.name, width, r.why_not);
  return fmt::format("{} {:<{}}  {:>6}  {:>9}  {:>9}{}  {:>6}  {:>6}  {:>9}  {:>11}  {:>9}  {:<15}  {}\n",
                     best ? '*' : ' ', r.name, width, r.stages, to_text(r.makespan), to_text(r.period),
                     replay_column(table, replayed_text(r.replayed)), percent(r.bubble), percent(r.steady_bubble),
                     to_text(r.memory), r.activations, to_text(r.traffic), safe_text(r), weights_text(r));
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
  std::size_t width = 8;
  for (const ScheduleRow& r : table.rows) width = std::max(width, r.name.size());
  std::string text =
      fmt::format("{}\n{} on {}: {}, {}; {} simulated by {}\n\n", table.title, table.model, table.cluster.name,
                  counted(table.devices, "device"), counted(table.micro_batches, "micro-batch", "es"),
                  counted(table.iterations, "iteration"), table.backend);
  text += fmt::format("  {:<{}}  {:>6}  {:>9}  {:>9}{}  {:>6}  {:>6}  {:>9}  {:>11}  {:>9}  {:<15}  {}\n", "schedule",
                      width, "stages", "iteration", "period", replay_column(table, table.replay.backend), "bubble",
                      "steady", "memory", "activations", "traffic", "safe streams", "weights");
  const std::vector<bool> front = pareto_front(table);
  for (std::size_t i = 0; i < table.rows.size(); ++i) text += row_text(table, table.rows[i], front[i], width);
  return text + "\n" + answer(table);
}

}  // namespace stagecraft
