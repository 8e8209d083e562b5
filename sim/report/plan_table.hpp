#pragma once

#include <string>
#include <vector>

#include "sim/report/replay.hpp"

namespace stagecraft {

/// What one planner makes of a question; only the name and the reason when it has no plan, or one that cannot run.
struct PlanRow {
  std::string planner;
  std::string why_not;   ///< One line; empty when it ran.
  std::string schedule;  ///< That it was simulated with.
  int stages = 0, devices = 0;
  Seconds predicted;    ///< Of one micro-batch, by the planner; 0: it says nothing.
  Seconds lower_bound;  ///< 0: none is known.
  std::string bound_reason;
  Seconds least;  ///< What no plan with such micro-batches is simulated to beat, whoever makes it; 0: not known.
  std::string least_reason;
  Seconds makespan, period;          ///< Simulated; the period is that of one iteration.
  std::optional<Replayed> replayed;  ///< The same two where messages share links.
  Seconds each;                      ///< Simulated period of one micro-batch.
  Bytes memory;                      ///< Simulated, of the fullest device.
  std::int64_t states = 0;
  double seconds = 0;  ///< The search took so long.
  std::string plan;    ///< As text, when it is asked for.

  bool ran() const { return why_not.empty(); }
};

struct PlanTable {
  std::string title, model, cluster, schedule;
  int micro_batches = 0;
  std::vector<std::string> notes;  ///< Remarks on the scenario as it stands.
  Replay replay;
  std::vector<PlanRow> rows;
};

/// The shortest simulated period first, among rows that were played again that of then; what did not run last, by name.
void sort_rows(PlanTable&);

std::string to_text(const PlanTable&);
std::string plans_csv(const PlanTable&);
std::string plans_json(const PlanTable&);  ///< Schema plans/1; SI units.

}  // namespace stagecraft
