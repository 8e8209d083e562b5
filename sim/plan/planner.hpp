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
#include "sim/plan/plan_spec.hpp"

namespace stagecraft {

struct PlannerInput {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostTable& costs;
  const PlanSpec& options;
  int micro_batches;     ///< In one iteration.
  Placing placing = {};  ///< Where the schedule wants the stages.
};

/// What a planner knows about its plan.
struct PlannerReport {
  Seconds predicted = {};  ///< Time of one micro-batch in the steady state, by the planner's own model; 0: it has none.
  Bytes memory = {};       ///< Memory of the fullest device, by that model; 0: unknown.
  Seconds lower_bound = {};       ///< No plan of its kind takes less, by that model; 0: none is known.
  std::string bound_reason = {};  ///< Why: "the search was exhaustive", "all work shared evenly".
  std::int64_t states = 0;        ///< Partial plans that were looked at.
};

struct Planned : PlannerReport {
  Plan plan;
};

/// One way to cut and place: one file in sim/plan/planners/.
struct PlannerDef {
  std::string_view name, summary, source;
  const config::MapSpec* fields;
  Planned (*plan)(const PlannerInput&);
  /// Reads the options that this planner alone has; null if there are none.
  std::shared_ptr<const PlannerOptions> (*read)(const config::Value& checked, const Cluster&) = nullptr;
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
Share parse_share(std::string_view word);

/// The option `recompute`: none, selective or full, or with `automatic` also auto, which comes first then.
config::Field recompute_field(bool automatic = false);
/// The kinds of recomputation that make a difference for the model, least first.
std::vector<Recomputation> recomputations(const ModelGraph&);
/// The kinds to try: the one of the option, or all if the planner chooses. InputError where it is selective and the
/// model has no attention core.
std::vector<Recomputation> recomputations(const PlanSpec&, const ModelGraph&);
std::vector<Recomputation> recomputations(std::optional<Recomputation> asked, const Where&, const ModelGraph&);

/// Memory of a device as a planner counts it, with what was reserved beside it: nothing where the option `memory` says
/// how much there is, or where types with as much reserve differently.
std::string room_text(const PlannerInput&, Bytes room);

/// The devices with these names (a list, or one alone); an unknown name is a problem at its place.
std::vector<DeviceId> read_devices(const config::Value& names, const Cluster&, const std::string& path,
                                   config::Problems&);
/// Those of the option `devices`, or all of the cluster where it is left out.
std::vector<DeviceId> available_devices(const PlannerInput&);

}  // namespace stagecraft
