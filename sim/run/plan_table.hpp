#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/plan_table.hpp"
#include "sim/run/scenario.hpp"

namespace stagecraft {

struct PlanTableOptions {
  std::string file;  ///< Scenario, and what --set says of it.
  std::vector<std::string> sets;
  std::string planners = "all";   ///< Or names with commas between.
  std::string backend = "ideal";  ///< One that simulates.
  bool show = false;              ///< The plans too.
  int replay = 0;                 ///< Rows to be played again on `fluid`.
};

/// Every planner on the model, the cluster and the micro-batches of a scenario, with the options that it shares with
/// the scenario's own, each simulated with the scenario's schedule. What has no plan, or one that cannot run, is a row
/// with its reason. `progress` hears of each.
PlanTable compare_plans(const PlanTableOptions&, const std::function<void(const std::string&)>& progress);

}  // namespace stagecraft
