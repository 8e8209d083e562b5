#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// A row of a table, ranked where no message is in the way of another, played again where they share links.
struct Replayed {
  Seconds makespan, period;
  std::string why_not = {};  ///< One line; empty when it ran.

  bool ran() const { return why_not.empty(); }
};

/// What a table says of it.
struct Replay {
  std::string backend;           ///< Empty: nothing was to be played again.
  int rows = 0;                  ///< That were.
  bool changed = false;          ///< Their order is another than before.
  std::size_t was_first = 0;     ///< Where the row is now that came first of them.
  std::optional<Seconds> best;   ///< Their shortest period with sharing.
  std::optional<Seconds> other;  ///< The shortest period of the others, without.

  bool asked() const { return !backend.empty(); }
};

/// Equal where they agree to nine digits: sums in another order differ in the last ones.
bool shorter(Seconds a, Seconds b);

/// "54 ms"; "-" where it was not played again, "too full" where it could not run.
std::string replayed_text(const std::optional<Replayed>&);
/// What the column means, and a line when the order is another. `first`: how the row that came first is called;
/// `width`: of the words before each line, 0 for a colon behind them.
std::string replay_text(const Replay&, std::size_t width, const std::string& first, Seconds before,
                        const std::optional<Replayed>& after);

void count(Replay&, Seconds period, const std::optional<Replayed>&);

/// For the table, and for a row: null where it was not played again.
nlohmann::ordered_json replay_json(const Replay&);
nlohmann::ordered_json replayed_json(const std::optional<Replayed>&);
/// Two columns, each with a comma before it: their heads, and those of a row.
std::string replay_csv_head(const Replay&);
std::string replayed_csv(const Replay&, const std::optional<Replayed>&);

/// Sorts rows that are in their order without sharing: those that were played again first, the shortest `time` of them
/// first; behind them those that could not run; the others stay as they were.
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
  replay.was_first = static_cast<std::size_t>(std::min_element(order.begin(), others) - order.begin());
  std::vector<Row> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

/// Leaves it to the `most` rows with the shortest times without sharing, and counts them.
template <class Row, class Time>
void keep_replays(std::vector<Row>& rows, int most, Replay& replay, Time time) {
  std::vector<Row*> by_time;
  for (Row& r : rows)
    if (r.ran()) by_time.push_back(&r);
  std::stable_sort(by_time.begin(), by_time.end(), [&](Row* a, Row* b) { return shorter(time(*a), time(*b)); });
  for (std::size_t i = static_cast<std::size_t>(most); i < by_time.size(); ++i) by_time[i]->replayed.reset();
  for (const Row* r : by_time) count(replay, r->period, r->replayed);
}

}  // namespace stagecraft
