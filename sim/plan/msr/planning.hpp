#pragma once

#include <string>
#include <vector>

#include "sim/plan/msr/pipedream.hpp"
#include "sim/plan/planner.hpp"

namespace stagecraft::msr {

/// Fields that several planners have.
config::Field micro_batch_field();
config::Field devices_field();
config::Field cuts_field();

/// Those to use, each once.
std::vector<DeviceId> devices_of(const PlannerInput&);

/// The types of some devices, each once in the order of the devices, and which of them each device has.
struct Types {
  std::vector<DeviceTypeId> types;
  std::vector<int> of;  ///< Of each device, among `types`.

  bool mixed() const { return types.size() > 1; }
  std::vector<int> counts() const;  ///< Devices of each type.
};
Types types_of(const Cluster&, const std::vector<DeviceId>&);

/// Bytes a second from each to each; 0 from one to itself.
std::vector<std::vector<double>> bandwidths_of(const Cluster&, const std::vector<DeviceId>&);
/// The slowest link between any two of them; infinite where there is one device.
double slowest_between(const Cluster&, const std::vector<DeviceId>&);

/// The slowest hop of the rings in each `group` of these devices, from one to that `step` behind it; infinite where
/// there is none.
double ring_bandwidth(const Cluster&, const std::vector<DeviceId>&, std::size_t group, std::size_t step = 1);

/// On one level: the slowest hop of their ring; of devices of several types, whose order stages choose, the slowest
/// between any two.
double flat_bandwidth(const PlannerInput&, const std::vector<DeviceId>&);

/// Devices of each host, where hosts follow one another and have equally many; else all of them.
int devices_of_host(const Cluster&, const std::vector<DeviceId>&);

/// Where stages may end: after any set of layers with its inputs, where PipeDream's code looks, or in the order of the
/// model.
enum class CutChoice : std::uint8_t { All, Released, Listed };

/// The options of the planners that cut along such sets of layers.
struct CutOptions : PlannerOptions {
  CutChoice cuts = CutChoice::All;
};
CutChoice read_cuts(const config::Value& checked);

Cuts cuts_of(const PlannerInput&);
/// Their sums for micro-batches of the option `micro_batch_size`, on each of the types.
MixedWork workload_of(const PlannerInput&, const Types&);

/// All work of such a micro-batch, shared as evenly as the devices allow (bounds.hpp).
double shared_evenly(const PlannerInput&, const Types&);

/// What PipeDream and its exhaustive search share: `formula`, `transfers`, `straight`, `fewer`, `memory`.
std::vector<config::Field> pipedream_fields();
/// Of a stage, by what they divide.
int most_replicas(const PlannerInput&);
struct PipeDreamPlannerOptions : CutOptions {
  PipeDreamOptions rules;                           ///< Without levels, which depend on the devices.
  std::optional<std::vector<int>> machines;         ///< Devices of each server, then servers, and so on.
  std::optional<std::vector<Bandwidth>> bandwidth;  ///< One for each of these levels.
};
std::shared_ptr<const PlannerOptions> read_pipedream(const config::Value& checked, const Cluster&);

/// The plan of a pipeline, with what its workers keep: a stage that has w micro-batches in flight keeps w versions of
/// its weights and w stashes (PipeDream, section 3.3), where w = ceil((machines from it on) / replicas).
Planned planned(const PlannerInput&, const Workload&, const FoundPipeline&, const std::vector<DeviceId>&);

/// No pipeline was allowed: what would help.
[[noreturn]] void refuse(const PlannerInput&, const Workload&, std::size_t devices);

}  // namespace stagecraft::msr
