#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/output/drawings.hpp"
#include "sim/output/run_row.hpp"
#include "sim/result/interval.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The result of one schedule on a scenario; only the name and the reason when it cannot run.
struct ScheduleRow : RunRow {
  double bubble = 0, steady_bubble = 0;
  std::string fullest;  ///< Name of the fullest device.
  int activations = 0;  ///< Largest number of whole stashes alive on a device.
  Bytes traffic;        ///< Bytes that devices send each other in one iteration.
  /// The stream models (single, pair, direction) in which messages never deadlock; nothing where that is not known.
  std::optional<std::vector<std::string>> safe;
  std::string bottleneck;  ///< What holds it up, in a few words.
  int staleness = 0;       ///< Largest number of updates between the weights of a gradient and those it is applied to.

  std::optional<ScheduleSearch> search;  ///< How the order was found, where it was searched for.

  struct DrawingData {
    Program program;
    Timeline timeline;
    std::optional<Timeline> contended;  ///< With contention, where that is simulated.
  };
  std::optional<DrawingData> drawing;  ///< What drawings need, where they are asked for.
};

/// Schedules on one scenario, with the model, devices and micro-batches in common.
struct ScheduleTable {
  std::string title, model, backend;
  std::string configured;  ///< The schedule that the scenario asks for.
  Cluster cluster;
  std::string plan;  ///< plan_line() of the scenario.
  int devices = 0, micro_batches = 0, iterations = 0;
  int stages = 0;                  ///< Stages of the scenario's plan, if a schedule may have another number; else 0.
  std::vector<std::string> notes;  ///< Remarks on the scenario as it is written.
  Replay replay;
  std::optional<PredictionInterval> interval;  ///< The interval of simulated times.
  std::vector<ScheduleRow> rows;
  std::vector<std::string> not_compared;  ///< Schedules without a row, because the comparison was stopped.
};

enum class SortKey { Time, Period, Memory, Traffic };
SortKey parse_sort_key(std::string_view);  ///< "time", "period", "memory", "traffic"; InputError otherwise.

/// The smallest first; ties are broken by period, makespan and name. What did not run comes last, by name. Numbers that
/// agree to nine digits are equal, because sums in another order differ in their last digits. When sorted by a time,
/// rows that were simulated with contention come first, in the order of that result.
void sort_rows(ScheduleTable&, SortKey);

/// Says for each row whether it ran and no other row is better in period or memory without being worse in the other.
/// Compares periods with contention where all rows have one.
std::vector<bool> pareto_front(const ScheduleTable&);

/// The rows that answer the question; null when nothing ran, or nothing synchronous.
struct BestRows {
  const ScheduleRow* synchronous = nullptr;  ///< Shortest period without stale weights.
  const ScheduleRow* fastest = nullptr;      ///< Shortest period of all.
  const ScheduleRow* smallest = nullptr;     ///< Least memory.
};
BestRows best_of(const ScheduleTable&);

/// The table and, below it, the answer in words.
std::string to_text(const ScheduleTable&, const TextLayout& = {});
/// The table alone.
Table rows_of(const ScheduleTable&);
/// The line below the table about rows without the exchange of tied weights' gradients; empty where there are none.
std::string unexchanged_text(const ScheduleTable&);
std::string schedules_csv(const ScheduleTable&);
/// Schema schedules/1: every number in SI units, with its unit in the name.
std::string schedules_json(const ScheduleTable&);

/// What schedules_csv() and schedules_json() write.
std::vector<FileColumn> schedules_columns();
const config::MapSpec& schedules_fields();

/// One strip for each row that was kept, in the order of the rows. Strips refer to the table.
std::vector<Strip> strips_of(const ScheduleTable&);

}  // namespace stagecraft
