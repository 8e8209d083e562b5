#pragma once

#include <string>

#include "sim/plan/planner.hpp"
#include "sim/plan/stage_cost.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"
#include "sim/run/scenario.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Everything between a scenario and a backend.
struct Prepared {
  ModelGraph model;
  Cluster cluster;
  Plan plan;
  Planned planned;   ///< What the planner says of it; its own plan has moved to `plan`.
  Seconds planning;  ///< The planner took so long.
  StageCosts costs;
  Schedule schedule;
  Program program;
};

struct Outcome {
  Timeline timeline;
  Report report;
};

/// The first half of the road: model, cluster, plan and costs.
Prepared lay_out(const Scenario&);

/// The road from a scenario to a program that has passed every check.
Prepared prepare(const Scenario&);

/// The fullest device; Infeasible when one needs more than it has, with the messages that are on their way.
Bytes fullest_of(const Report&, const Cluster&);

/// Runs it on a backend of the catalogue. `one_thread`: a real run in the order of the program.
Timeline execute(const Scenario&, const Prepared&, const std::string& backend, bool one_thread = false);

/// The same, and measures the timeline, unless another process has it.
Outcome run(const Scenario&, const Prepared&, const std::string& backend);

}  // namespace stagecraft
