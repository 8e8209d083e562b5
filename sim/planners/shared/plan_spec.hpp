#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/plan.hpp"
#include "sim/planners/shared/offload.hpp"

// The `plan:` map of a scenario as typed options, and as text.

namespace stagecraft {

struct PlannerDef;

/// The options that one planner alone has, as a value whose type only that planner knows; may be null.
using PlannerOptions = std::shared_ptr<const void>;

/// Which planner makes the plan, and its options. The `plan:` map of a scenario is read into it once; commands that try
/// many plans set members. A planner ignores the members that it has no field for.
struct PlanSpec {
  const PlannerDef* planner = nullptr;
  std::optional<int> stages;  ///< Nothing: the planner decides, or the scenario lists the stages.
  int replicas = 1;           ///< Copies of each stage, each on one device or one group.
  Degrees group = {};         ///< How the devices of a group divide a replica; `replicas` is not read.
  RankOrder order = {};       ///< How the devices are numbered.
  bool within_node = false;   ///< Tensor groups may not cross nodes.
  ContextExchange exchange = ContextExchange::Ring;
  ExpertDispatch dispatcher = ExpertDispatch::AllToAll;
  bool overlaps_shared = false;  ///< Shared experts run next to the exchanges of the others.
  StateSharding sharding = StateSharding::None;
  int shard_within = 0;          ///< Devices that divide a state; 0: all with the same part of the parameters.
  std::optional<bool> reshard;   ///< Sharding of weights; nothing: only without a pipeline, as in PyTorch.
  int micro_batch_size = 1;      ///< Samples of one micro-batch, of all replicas that share them together.
  Share share = Share::Samples;  ///< What replicas divide.
  std::optional<Recomputation> recompute = Recomputation::None;  ///< Nothing: the planner chooses.
  int recompute_layers = 0;                      ///< Only the first layers of each stage run again; 0: all.
  std::optional<Placement> placement;            ///< Nothing: the placement of the schedule.
  std::optional<std::vector<DeviceId>> devices;  ///< Nothing: all devices of the cluster.
  bool divides_vocabulary = false;               ///< All ranks have a part of its layers.
  std::optional<Offload> offload = {};           ///< Nothing: host memory keeps nothing.
  bool sequential = false;                       ///< Parallel branches run one after the other.
  bool straight = false;                         ///< Every stage has one device.
  std::optional<Bytes> memory;                   ///< Memory of each device, in place of its type's.
  std::optional<Bandwidth> bandwidth;            ///< Rate of every link, in place of the cluster's.
  std::optional<std::int64_t> effort;            ///< Partial plans or steps of a search, at most.
  PlannerOptions planner_options;
  std::shared_ptr<const config::Value> source;  ///< The checked map it was read from; null if there is none.

  /// Samples of a micro-batch of one replica, as a scenario writes them.
  int written_micro_batch_size() const {
    return share == Share::Samples ? micro_batch_size / replicas : micro_batch_size;
  }
  /// Where a field was written, or else the whole map, for messages.
  Where where(std::string_view field) const;
  /// Degrees, sharding and the kind of exchange of every stage of a plan of this many stages; without layers.
  StageShape shape(int stage_count) const;
  bool has_micro_batch_size() const;  ///< The planner has this option.

  friend bool operator==(const PlanSpec&, const PlanSpec&) = default;

  template <class Options>
  const Options& options() const {
    return *static_cast<const Options*>(planner_options.get());
  }
};

/// Reads a checked `plan:` map. InputError for devices that the cluster does not have.
PlanSpec read_plan_spec(const config::Value& checked, const Cluster&);
PlanSpec read_plan_spec(const PlannerDef&, std::shared_ptr<const config::Value> checked, const Cluster&);

/// The planner with every option at its default.
PlanSpec default_plan_spec(const PlannerDef&, const Cluster&);

/// The checked options of a plan, for another planner: what was written there, where this planner has that field too,
/// and `stages` where it needs a number of stages and none was written. InputError where a value is not allowed. What
/// `without` names is left at its default.
PlanSpec plan_spec_for(const PlannerDef&, const PlanSpec& other, int stages, const Cluster&,
                       const std::vector<std::string_view>& without = {});

/// "{planner: balanced, micro_batch_size: 2, stages: 4, devices: [\"a\", \"b\"]}": the map as YAML on one line, of the
/// members that differ from their defaults, and of the options that the planner alone has, as they were written.
std::string to_text(const PlanSpec&, const Cluster&);

}  // namespace stagecraft
