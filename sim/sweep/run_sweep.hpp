#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/core/quantity.hpp"
#include "sim/experiment/own_orders.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/table.hpp"

// Runs a sweep, for `sweep`, `report` and `serve`: its points are jobs of a farm, and results go into the file of the
// sweep.

namespace stagecraft {

struct SweepOptions {
  std::string file;                    ///< The sweep file.
  std::vector<std::string> sets = {};  ///< "path=value" for every point.
  std::vector<std::string> only = {};  ///< "path=value" conditions.
  Shard shard = {};
  std::string backend = {};  ///< Empty: the sweep's own, or its default.
  int jobs = 0;        ///< Workers; 0: one per core, or one if times are measured or several processes share the sweep.
  Seconds timeout{0};  ///< Limit for each point; zero: none.
  bool retry = false;  ///< Run points again that crashed, timed out or failed in the backend.
  bool reuse = false;  ///< Results of other versions count.
  std::string out = {};                 ///< Empty: the sweep's name with .db, in the working folder.
  bool together = false;                ///< Processes that a launcher has started share the sweep.
  std::vector<std::string> parts = {};  ///< Files with results of the same sweep, which are merged before it runs.
  std::vector<OwnSchedule> own_schedules = {};  ///< Their names may be values of run.schedule.
  std::function<bool()> stop = [] { return false; };
};

/// A sweep with its points chosen, before anything runs.
struct SweepPlan {
  Sweep sweep;
  std::vector<Point> points;        ///< All points of the file.
  std::vector<std::string> hashes;  ///< One per point.
  std::vector<bool> chosen;         ///< One per point: whether --only and --shard let it run.
  std::string backend, out;
  std::vector<Diagnostic> warnings;

  int count() const;  ///< How many points are chosen.
};
SweepPlan plan_sweep(const SweepOptions&);
/// The chosen points without results.
SweepTable planned_table(const SweepPlan&);

/// Counts points, of which several may be one scenario that runs once.
struct SweepProgress {
  int total = 0;   ///< Chosen points.
  int there = 0;   ///< Points that had a result before.
  int done = 0;    ///< Points that this run has finished.
  int failed = 0;  ///< Points among `done` that have no figures.
  double seconds = 0;
};

struct SweepEnd {
  SweepTable table;  ///< Rows of the chosen points.
  SweepProgress progress;
  bool stopped = false;
  std::vector<int> lost;                       ///< Ranks that went silent.
  std::map<int, std::string> without_workers;  ///< Ranks whose workers have died, and why.
  int reused = 0;                              ///< Scenarios with a result of another version.
  bool elsewhere = false;                      ///< Only the first process has the results, and this is another one.
};

/// Runs the points that have no result yet and writes each result to the file at once. `progress` is called after each
/// result and several times a second.
///
/// `together`: all processes that were started together call this, before they join. They share the points, and only
/// the first one writes the file.
SweepEnd run_sweep(const SweepPlan&, const SweepOptions&, const std::function<void(const SweepProgress&)>& progress);

}  // namespace stagecraft
