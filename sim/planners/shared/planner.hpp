#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/cost/cost_table.hpp"
#include "sim/cost/stage_memory.hpp"
#include "sim/plan/message_buffers.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/plan.hpp"
#include "sim/planners/shared/plan_spec.hpp"

namespace stagecraft {

struct PlannerInput {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostTable& costs;
  const PlanSpec& options;
  int micro_batches;           ///< Number in one iteration.
  PlacementRule placing = {};  ///< Where the schedule wants the stages.
  bool trains = true;          ///< False: stages run forwards alone, and `costs` has no time for anything else.
};

/// What a planner says about its plan: predictions, and what it assumes of the run.
struct PlannerReport {
  Seconds predicted = {};    ///< Time of one micro-batch in the steady state, by the planner's model; 0: unknown.
  Bytes memory = {};         ///< Memory of the fullest device, by that model; 0: unknown.
  Seconds model_limit = {};  ///< No plan of its kind takes less in that model, but in simulation one may; 0: unknown.
  std::string limit_reason = {};  ///< Reason for the limit: "the search was exhaustive", "all work shared evenly".
  std::string heuristic = {};     ///< How it searched, where another plan of its kind may be better; else empty.
  std::int64_t states = 0;        ///< Partial plans that the search visited.
  MessageBuffers buffers = {};    ///< Messages that its memory has room for; a run that says nothing else has as many.
};

struct Planned : PlannerReport {
  Plan plan;
};

/// One method to cut the model and place the stages: one file in sim/planners/.
struct PlannerDef {
  std::string_view name, summary, source;
  const config::MapSpec* fields;
  Planned (*plan)(const PlannerInput&);
  /// Reads the options that this planner alone has; null if there are none.
  PlannerOptions (*read)(const config::Value& checked, const Cluster&) = nullptr;
  /// Why it plans no run of forwards alone: "the planner 'x' ...". Empty: it plans them too.
  std::string_view training_alone = {};
};

namespace planners {
Catalog<PlannerDef> catalog();
}

/// The plan of the planner that the options name. InputError for a run of forwards alone that it does not plan.
Planned make_plan(const PlannerInput&);

/// The part of the memory of layers that stays on a device: without training the weights alone.
MemoryUnits kept_memory(const PlannerInput&, const MemoryUnits&);

/// The edges that a division of the layers implies: one for each pair of stages with a tensor between them.
void add_data_edges(Plan&, const ModelGraph&);

/// Sets the mini-batch to the number of micro-batches times the largest micro-batch size of a stage.
void count_samples(Plan&, const PlannerInput&);

/// The last step of every planner of whole stages: count_samples(), data edges, make_sequential() if `sequential`, and
/// check_plan().
void finish_plan(Plan&, const PlannerInput&, bool sequential);

/// Says that the search was a heuristic, and how. Its bound is then that of every plan: all work shared by the devices.
void set_heuristic(PlannerReport&, const PlannerInput&, const std::string& how);

/// The option `share` of planners that make replicas, and its value for a word.
config::Field share_field();
Share parse_share(std::string_view word);

/// The option `recompute`: none, selective or full; with `automatic` also auto, which is then the default; with
/// `by_layers` also layers, half, outputs and lists of modules.
config::Field recompute_field(bool automatic = false, bool by_layers = false);
/// Nothing for auto.
std::optional<Recomputation> read_recomputation(const config::Value& checked);
/// The kinds of recomputation that make a difference for the model, least first.
std::vector<Recomputation> recomputations(const ModelGraph&);
/// The kinds to try: the one of the option, or all if the planner chooses. InputError if the option is selective and
/// the model has no attention core.
std::vector<Recomputation> recomputations(const PlanSpec&, const ModelGraph&);
std::vector<Recomputation> recomputations(std::optional<Recomputation> asked, const Where&, const ModelGraph&);

/// Text of a device's memory as a planner counts it, with the reserved memory. The reserve is not shown if the option
/// `memory` sets the size, or if types with equal memory reserve different amounts.
std::string room_text(const PlannerInput&, Bytes room);

/// The devices with these names (a list, or one alone); an unknown name is a problem at its place.
std::vector<DeviceId> read_devices(const config::Value& names, const Cluster&, const std::string& path,
                                   config::Problems&);
/// The devices of the option `devices`, or all devices of the cluster without it.
std::vector<DeviceId> available_devices(const PlannerInput&);
/// available_devices(), for planners that use each device once. InputError when there is none, or one is named twice.
std::vector<DeviceId> distinct_devices(const PlannerInput&);

}  // namespace stagecraft
