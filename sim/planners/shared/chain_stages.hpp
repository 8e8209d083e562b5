#pragma once

#include <string>

#include "sim/planners/shared/planner.hpp"

namespace stagecraft {

/// Consecutive stages on devices, before they have layers.
struct ChainStages {
  Plan plan;
  bool both_ways = false;  ///< A second copy of the stages will run the other way.
  int turn = 0;            ///< See add_way_back().
};

/// The options of planners that make a chain: `division` says how the model is divided.
config::MapSpec chain_fields(std::string title, config::Field division);

/// `count` stages with replicas and groups on the devices that the placement of the plan, or of the schedule, gives
/// them. InputError or Infeasible where they do not fit.
ChainStages place_chain(const PlannerInput&, int count);

/// The plan of a chain whose stages have layers: finish_plan(), and the way back.
Plan finish_chain(ChainStages, const PlannerInput&);

}  // namespace stagecraft
