#pragma once

#include <string>

#include "sim/planners/shared/planner.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::test {

/// These checked options of a planner.
inline PlanSpec plan_spec(const PlannerDef& def, const config::Value& checked, const Cluster& cluster) {
  return read_plan_spec(def, std::make_shared<const config::Value>(checked), cluster);
}

/// The result of a planner of the catalog for a model and a cluster, with these options.
inline Planned planned(const std::string& name, const ModelGraph& model, const Cluster& cluster,
                       const std::string& yaml, int micro_batches = 8) {
  const PlannerDef& def = get_from(planners::catalog(), "planner", name);
  const config::Value options = checked(yaml, *def.fields);
  const CostTable costs(model, cluster);
  return def.plan({model, cluster, costs, plan_spec(def, options, cluster), micro_batches});
}

}  // namespace stagecraft::test
