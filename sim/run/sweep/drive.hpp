#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/core/quantity.hpp"
#include "sim/run/sweep/result.hpp"
#include "sim/run/sweep/table.hpp"

namespace stagecraft {

struct SweepOptions {
  std::string file;                    ///< Sweep.
  std::vector<std::string> sets = {};  ///< "path=value" for every point.
  std::vector<std::string> only = {};  ///< "path=value" conditions.
  Shard shard = {};
  std::string backend = {};  ///< Empty: the sweep's own.
  int jobs = 0;              ///< Workers; 0: one for each core, or one where times are measured or processes share it.
  Seconds timeout{0};        ///< Of a point; zero: none.
  bool retry = false;        ///< Points that crashed or hung once more.
  bool reuse = false;        ///< Results of other versions count.
  std::string out = {};      ///< Empty: the sweep's name with .db, in the working folder.
  bool together = false;     ///< Processes that a launcher has started share it.
  std::function<bool()> stop = [] { return false; };
};

/// A sweep with its points chosen and nothing run.
struct SweepPlan {
  Sweep sweep;
  std::vector<Point> points;        ///< All of the file.
  std::vector<std::string> hashes;  ///< Of each.
  std::vector<bool> chosen;         ///< By --only and --shard.
  std::string backend, out;
  std::vector<Diagnostic> warnings;

  int count() const;  ///< Of those chosen.
};
SweepPlan plan_sweep(const SweepOptions&);

/// How far it is. Several points may be one scenario, which runs once; `there`, `done` and `all` count points.
struct SweepProgress {
  int all = 0, there = 0, done = 0, failed = 0;  ///< Chosen; with a result before; run now; of those without figures.
  double seconds = 0;
};

struct SweepEnd {
  SweepTable table;  ///< Of the chosen points.
  SweepProgress progress;
  bool stopped = false;
  std::vector<int> lost;                       ///< Processes of a joined world that were lost on the way.
  std::map<int, std::string> without_workers;  ///< Processes whose workers have died, and what was said of it.
  int reused = 0;                              ///< Scenarios whose results are of other versions.
  bool elsewhere = false;                      ///< Another process has it; here is nothing.
};

/// Runs what has no result yet, and keeps each result in the file as it comes. `progress` hears of every result, and
/// several times a second.
///
/// `together`: all processes that were started together call this, before they have joined. They share the points, and
/// the first alone writes the file.
SweepEnd run_sweep(const SweepPlan&, const SweepOptions&, const std::function<void(const SweepProgress&)>& progress);

}  // namespace stagecraft
