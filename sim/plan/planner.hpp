#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/cost/cost_table.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

struct PlannerInput {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostTable& costs;
  const config::Value& options;  ///< The checked `plan:` map.
  int micro_batches;             ///< In one iteration.
  Placing placing = {};          ///< Where the schedule wants the stages.
};

/// What a planner found, and what it knows about it.
struct Planned {
  Plan plan;
  Seconds predicted = {};    ///< Of one micro-batch in the steady state, by the planner's own model; 0: it has none.
  Bytes memory = {};         ///< Of the fullest device, by that model; 0: not reckoned.
  Seconds lower_bound = {};  ///< No plan of its kind takes less, by that model; 0: none is known.
  std::string bound_reason = {};  ///< What holds it up: "the search was exhaustive", "all work shared evenly".
  std::int64_t states = 0;        ///< Partial plans that were looked at.
};

/// One way to cut and place: one file in sim/plan/planners/.
struct PlannerDef {
  std::string_view name, summary, source;
  const config::MapSpec* fields;
  Planned (*plan)(const PlannerInput&);
};

namespace planners {
Catalog<PlannerDef> all();
}

/// The edges that a division of the layers implies: one for each pair of stages with a tensor between them.
void add_data_edges(Plan&, const ModelGraph&);

/// Sets the mini-batch: micro-batches of the largest stage size.
void count_samples(Plan&, const PlannerInput&);

/// What every planner of whole stages ends with: count_samples(), data edges, the sequence when it is asked for, and
/// check_plan().
void finish_plan(Plan&, const PlannerInput&, bool sequential);

/// The option `share` of planners that make replicas, and what it says.
config::Field share_field();
Share share_of(const config::Value& options);

/// The option `recompute`: none, selective or full, or with `automatic` also auto, which comes first then.
config::Field recompute_field(bool automatic = false);
/// Its words that make a difference for the model, least first.
std::vector<std::string> recompute_words(const ModelGraph&);
/// Those to try: the one of the option, or of auto all. InputError where it is selective and the model has no attention
/// core.
std::vector<std::string> recompute_words(const config::Value& options, const ModelGraph&);
void set_recompute(Stage&, std::string_view word);

/// Memory of a device as a planner counts it, with what was reserved beside it: nothing where the option `memory` says
/// how much there is, or where types with as much reserve differently.
std::string room_text(const PlannerInput&, Bytes room);

/// The devices with these names (a list, or one alone); an unknown name is a problem at its place.
std::vector<DeviceId> read_devices(const config::Value& names, const Cluster&, const std::string& path,
                                   config::Problems&);
/// Those of the option `devices`, or all of the cluster where it is left out.
std::vector<DeviceId> available_devices(const PlannerInput&);

}  // namespace stagecraft
