#pragma once

#include <string>
#include <vector>

#include "sim/output/run_row.hpp"
#include "sim/result/diagnosis.hpp"
#include "sim/result/interval.hpp"

namespace stagecraft {

/// The result of one planner on a scenario; only its name and the reason when it has no plan, or one that cannot run.
struct PlanRow : RunRow {
  std::string change;   ///< Options that make the plan fit in memory; empty: nothing had to change.
  Seconds predicted;    ///< Time of one micro-batch in the planner's own model; 0 where it has none.
  Seconds model_limit;  ///< No plan of its kind takes less in that model; 0 where nothing is known.
  std::string limit_reason;
  std::string heuristic;  ///< How the planner searched where its answer may not be the best of its kind; else empty.
  Seconds
      time_bound;  ///< Lower bound on the simulated time of any plan with such micro-batches; 0 where none is known.
  std::string time_bound_reason;
  Seconds each;  ///< Simulated period of one micro-batch.
  std::int64_t states = 0;
  double seconds = 0;  ///< Wall time of the search.
  std::string plan;    ///< The plan as text, when it is asked for.
};

struct PlanTable {
  std::string title, model, cluster, schedule;
  int micro_batches = 0;
  std::string reserve;             ///< reserve_line() of the cluster.
  std::vector<std::string> notes;  ///< Remarks on the scenario as it is written.
  Replay replay;
  std::optional<PredictionInterval> interval;  ///< The interval of simulated times.
  std::vector<PlanRow> rows;
  Diagnosis diagnosis;  ///< What limits the first row; the caller of compare_plans() adds it.
};

/// The shortest period first. Rows with a period with contention come first, sorted by it; what did not run comes last,
/// by name.
void sort_rows(PlanTable&);

std::string to_text(const PlanTable&, const TextLayout& = {});
/// The table alone.
Table rows_of(const PlanTable&);
std::string plans_csv(const PlanTable&);
std::string plans_json(const PlanTable&);  ///< Schema plans/1; SI units.

/// What plans_csv() and plans_json() write.
std::vector<FileColumn> plans_columns();
const config::MapSpec& plans_fields();

}  // namespace stagecraft
