#pragma once

#include <string>
#include <vector>

#include "sim/planners/shared/planner.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::test {

/// A chain whose layers take these seconds on a device of speed 1, for the forward and for each gradient.
inline ModelGraph chain(const std::vector<double>& seconds, double output = 8) {
  ModelGraph model;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Layer layer;
    layer.name = "l" + std::to_string(i);
    if (i > 0) layer.inputs = {LayerId{static_cast<std::int64_t>(i) - 1}};
    layer.times = LayerTimes{{seconds[i]}, {seconds[i]}, {seconds[i]}};
    layer.output.value = layer.stash.value = output;
    layer.parameters = 1;
    model.layers.push_back(std::move(layer));
  }
  return model;
}

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
