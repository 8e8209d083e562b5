#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/report/replay.hpp"
#include "sim/report/strip.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What one schedule makes of a question; only the name and the reason when it cannot run.
struct ScheduleRow {
  std::string name;
  std::string why_not;  ///< One line; empty when it ran.
  int stages = 0;
  Seconds makespan, period;
  std::optional<Replayed> replayed;  ///< The same two where messages share links.
  double bubble = 0, steady_bubble = 0;
  Bytes memory;         ///< Peak of the fullest device.
  std::string fullest;  ///< Its name.
  Bytes unexchanged;    ///< Gradients of tied weights whose exchange is not simulated.
  int activations = 0;  ///< Most whole stashes alive on a device.
  Bytes traffic;        ///< Messages between stages in one iteration; each counts once, however many links it crosses.
  /// Of single, pair and direction, the streams of messages that never block for ever; nothing: not known.
  std::optional<std::vector<std::string>> safe;
  int staleness = 0;  ///< Most updates that the weights of a gradient are behind those it is applied to.

  std::optional<Search> search;  ///< Of an order that was searched for.

  struct Kept {
    Program program;
    Timeline timeline;
  };
  std::optional<Kept> kept;  ///< For drawings, when they are asked for.

  bool ran() const { return why_not.empty(); }
};

/// Schedules on one scenario: the same model, devices and micro-batches.
struct ScheduleTable {
  std::string title, model, backend;
  std::string own;  ///< The scenario's own schedule.
  Cluster cluster;
  int devices = 0, micro_batches = 0, iterations = 0;
  std::vector<std::string> notes;  ///< Remarks on the scenario as it stands.
  Replay replay;
  std::vector<ScheduleRow> rows;
};

enum class SortKey { Time, Period, Memory, Traffic };
SortKey parse_sort_key(std::string_view);  ///< "time", "period", "memory", "traffic"; InputError otherwise.

/// The smallest first; among equals the shorter period, makespan, then by name. What did not run comes last, by name.
/// Numbers that agree to nine digits are equal: sums in another order differ in the last ones. By a time, rows that
/// were played again are sorted by that instead, and come first.
void sort_rows(ScheduleTable&, SortKey);

/// The period where messages share links, if it is known; else the one where they do not.
Seconds known_period(const ScheduleRow&);

/// Of each row: it ran, and no other has less of period or memory and not more of the other. The periods are those
/// where messages share links when all rows have one.
std::vector<bool> pareto_front(const ScheduleTable&);

/// The rows that answer the question; null when nothing ran, or nothing synchronous.
struct BestRows {
  const ScheduleRow* synchronous = nullptr;  ///< Shortest period without stale weights.
  const ScheduleRow* fastest = nullptr;      ///< Shortest period of all.
  const ScheduleRow* smallest = nullptr;     ///< Least memory.
};
BestRows best_of(const ScheduleTable&);

/// The table and, below it, the answer in words.
std::string to_text(const ScheduleTable&);
/// The line below the table about rows without the exchange of tied weights' gradients; empty where none is.
std::string unexchanged_text(const ScheduleTable&);
std::string schedules_csv(const ScheduleTable&);
/// "schedules/1": every number in SI units, with its unit in the name.
std::string schedules_json(const ScheduleTable&);

/// Of the rows that were kept, in their order. They refer to the table.
std::vector<Strip> strips_of(const ScheduleTable&);

}  // namespace stagecraft
