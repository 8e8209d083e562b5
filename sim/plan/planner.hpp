#pragma once

#include <string_view>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/cost/cost_table.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

struct PlannerInput {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostTable& costs;
  const config::Value& options;   ///< The checked `plan:` map.
  int micro_batches;              ///< In one iteration.
};

/// One way to cut and place: one file in sim/plan/planners/.
struct PlannerDef {
  std::string_view name, summary, source;
  const config::MapSpec* fields;
  Plan (*plan)(const PlannerInput&);
};

namespace planners {
Catalog<PlannerDef> all();
}

/// The edges that a division of the layers implies: one for each pair of stages with a tensor between them.
void add_data_edges(Plan&, const ModelGraph&);

}  // namespace stagecraft
