#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/quantity.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {

/// Messages share links on this backend, and it is as fast as the one that ranks the rows.
inline constexpr const char* kReplayBackend = "fluid";
/// Tables compare the steady state, which fewer iterations do not show.
inline constexpr int kFewestIterations = 5;

/// The times of a row when messages contend for links. Rows are ranked without contention first.
struct ContendedResult {
  Seconds makespan, period;
  std::string why_not = {};  ///< One line; empty when it ran.
  Joules energy = {};        ///< Energy of an iteration; zero where powers are not known.

  bool ran() const { return why_not.empty(); }
};

/// What a table says about its results with contention.
struct Replay {
  std::string backend;           ///< Simulates the contention; empty where it was not asked for.
  int rows = 0;                  ///< How many rows have a result with contention.
  bool changed = false;          ///< Contention changed their order.
  std::size_t was_first = 0;     ///< Where the row that was first without contention is now.
  std::optional<Seconds> best;   ///< Shortest period with contention.
  std::optional<Seconds> other;  ///< Shortest period, without contention, of rows that have none with it.

  bool asked() const { return !backend.empty(); }
};

/// Times that agree to nine digits are equal, because sums in another order differ in their last digits.
bool shorter(Seconds a, Seconds b);

/// "54 ms"; "-" where contention was not simulated, "too full" where the row could not run then.
std::string replayed_text(const std::optional<ContendedResult>&);
/// What the column means, and a line where contention changed the order. `first` describes the row that was first
/// without it. Each line begins with a label of `width` characters, or of its own length and a colon where that is 0.
std::string replay_text(const Replay&, std::size_t width, const std::string& first, Seconds before,
                        const std::optional<ContendedResult>& after);

void count(Replay&, Seconds period, const std::optional<ContendedResult>&);

/// JSON of the replay for the table, and for a row; null where it was not simulated with contention.
Json replay_json(const Replay&);
Json replayed_json(const std::optional<ContendedResult>&);

/// The column "fluid_period_s" or "fluid_makespan_s" in CSV, and the object of a row in JSON.
FileColumn replay_column(const std::string& backend, const std::string& what);
FileColumn replayed_column();
/// The member `replay` of the whole table in JSON.
config::Field replay_field();

/// Adds what is known with contention, if it was asked for: a column for people and two for CSV after the column `key`,
/// and an object at the end of a row in JSON.
template <class Row>
void add_replay_columns(TableColumns<Row>& columns, const Replay& replay, std::string_view key) {
  if (!replay.asked()) return;
  const auto seconds = [](Seconds ContendedResult::*time) {
    return
        [time](const Row& r) { return r.replayed && r.replayed->ran() ? TableCell((*r.replayed).*time) : TableCell(); };
  };
  const auto before = std::find_if(columns.begin(), columns.end(),
                                   [&](const auto& c) { return c.column.key && c.column.key->name() == key; });
  columns.insert(before + 1, {{{.heading = replay.backend, .width = 9, .drop_order = 1},
                               [](const Row& r) { return replayed_text(r.replayed); }},
                              {{.key = replay_column(replay.backend, "period"), .files = InFiles::Csv},
                               seconds(&ContendedResult::period)},
                              {{.key = replay_column(replay.backend, "makespan"), .files = InFiles::Csv},
                               seconds(&ContendedResult::makespan)}});
  columns.push_back(
      {{.key = replayed_column(), .files = InFiles::Json}, [](const Row& r) { return replayed_json(r.replayed); }});
}

/// Reorders rows that are sorted without contention: first the rows with a result with contention, by `time`; then
/// those that could not run with it; then the others in their order.
template <class Row, class Time>
void order_by_replay(std::vector<Row>& rows, Replay& replay, Time time) {
  const auto rank = [&](std::size_t i) { return !rows[i].replayed ? 2 : rows[i].replayed->ran() ? 0 : 1; };
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (rank(a) != rank(b) || rank(a) != 0) return rank(a) < rank(b);
    return shorter(time(*rows[a].replayed), time(*rows[b].replayed));
  });
  const auto others = std::find_if(order.begin(), order.end(), [&](std::size_t i) { return !rows[i].replayed; });
  replay.changed = !std::is_sorted(order.begin(), others);
  replay.was_first = std::min_element(order.begin(), others) - order.begin();
  std::vector<Row> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

/// Keeps results with contention only for the `limit` rows with the shortest times, and updates the counters.
template <class Row, class Time>
void keep_replays(std::vector<Row>& rows, int limit, Replay& replay, Time time) {
  std::vector<Row*> by_time;
  for (Row& r : rows)
    if (r.ran()) by_time.push_back(&r);
  std::stable_sort(by_time.begin(), by_time.end(), [&](Row* a, Row* b) { return shorter(time(*a), time(*b)); });
  for (std::size_t i = limit; i < by_time.size(); ++i) by_time[i]->replayed.reset();
  for (const Row* r : by_time) count(replay, r->period, r->replayed);
}

}  // namespace stagecraft
