#pragma once

#include <string>
#include <vector>

#include "sim/core/common_unit.hpp"
#include "sim/planners/chain_partition/pipedream.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::chain_partition {

/// Fields that several planners have.
config::Field micro_batch_field();
config::Field devices_field();
config::Field cuts_field();

/// The devices to use; InputError when there is none or one is named twice.
std::vector<DeviceId> devices_of(const PlannerInput&);

/// The types of some devices, each once in the order of the devices, and which of them each device has.
struct Types {
  std::vector<DeviceTypeId> types;
  std::vector<int> type_of;  ///< Type of each device, as an index into `types`.

  bool mixed() const { return types.size() > 1; }
  std::vector<int> counts() const;  ///< Number of devices of each type.
};
Types types_of(const Cluster&, const std::vector<DeviceId>&);

/// Bytes a second from each device to each other; 0 from a device to itself.
std::vector<std::vector<double>> bandwidths_of(const Cluster&, const std::vector<DeviceId>&);
/// Rate of the slowest link between any two of these devices; infinite when there is one device.
double slowest_between(const Cluster&, const std::vector<DeviceId>&);

/// Rate of the slowest hop of the rings in each `group` of these devices, where a hop goes from a device to the one
/// `step` positions later; infinite when there is no hop.
double ring_bandwidth(const Cluster&, const std::vector<DeviceId>&, std::size_t group, std::size_t step = 1);

/// Bandwidth of a single level: the slowest hop of the devices' ring, or the slowest link between any two devices when
/// they are of several types, because stages then choose their order.
double flat_bandwidth(const PlannerInput&, const std::vector<DeviceId>&);

/// Devices of each node if nodes follow one another and have equal numbers of devices; else the number of all devices.
int devices_of_node(const Cluster&, const std::vector<DeviceId>&);

/// Where stages may end: after any set of layers with its inputs, where PipeDream's code tries, or along the order of
/// the model.
enum class CutChoice : std::uint8_t { All, Released, Listed };

CutChoice read_cuts(const config::Value& checked);
Cuts cuts_of(const PlannerInput&, CutChoice);

/// Sums over the layers of each cut for micro-batches of the option `micro_batch_size`, on each of the types, with
/// times in a common unit.
struct WorkInUnit {
  CommonUnit unit;
  MixedWork mixed;
};
WorkInUnit workload_of(const PlannerInput&, const Types&);
/// The common unit of the layers on all of these types.
CommonUnit common_unit(const PlannerInput&, const Types&, int samples);

/// Fields that PipeDream and its exhaustive search share: `formula`, `transfers`, `straight`, `fewer`, `memory`, ...
std::vector<config::Field> pipedream_fields();
struct PipeDreamPlannerOptions {
  CutChoice cuts = CutChoice::All;
  PipeDreamOptions rules;                           ///< Options without levels, which depend on the devices.
  std::optional<std::vector<int>> machines;         ///< Devices of each server, then servers, and so on.
  std::optional<std::vector<Bandwidth>> bandwidth;  ///< Rate of each of these levels.
};
PlannerOptions read_pipedream(const config::Value& checked, const Cluster&);
/// These options without levels, for the run of the input. It accepts one replica for each sample at most, or a divisor
/// of the number of micro-batches if replicas take them in turn.
PipeDreamOptions pipedream_rules(const PlannerInput&);

/// The plan of a pipeline, which is in this unit, with the memory of its workers: a stage that has w micro-batches in
/// flight keeps w versions of its weights and w stashes (PipeDream, section 3.3), where w = ceil((machines from this
/// stage on) / replicas).
Planned planned(const PlannerInput&, const WorkInUnit&, const FoundPipeline&, const std::vector<DeviceId>&);

/// Says in the reason for the bound how many devices a plan leaves idle, for searches that may use all of them.
void note_idle_devices(Planned&, const PlannerInput&);

/// Throws Infeasible because no pipeline is allowed, and says what would help.
[[noreturn]] void refuse(const PlannerInput&, const Workload&, std::size_t devices);

}  // namespace stagecraft::chain_partition
