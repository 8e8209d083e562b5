#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/search/framework_limits.hpp"
#include "sim/search/network_parts.hpp"
#include "sim/search/pack_choices.hpp"
#include "sim/search/search_objective.hpp"

namespace stagecraft {

/// Where a schedule wants the stages: Linear if any place will do.
Placement placement_of(const ScheduleDef&);

/// Where the framework leaves the size of buckets to its user (`bucket_cap_mb` of PyTorch, 25 MiB by default), large
/// ones are tried too: fewer sums have fewer latencies.
inline constexpr Bytes kLargeBuckets{200 * 1024.0 * 1024.0};

/// Options of a planner, before it makes a plan of them.
struct PlanVariant {
  PlanSpec plan;
  Placement placement = Placement::Linear;
  int chunks = 1;  ///< Stages of each rank; 1 for other planners than `balanced`.
  /// The schedule that divides the micro-batches between two directions; null for pipelines in one direction.
  const ScheduleDef* both_ways = nullptr;
  int micro_batches = 1;
  PackChoice packs = {};          ///< What its micro-batches are, where sequences differ.
  bool buckets = false;           ///< Gradients are summed in the buckets of the software.
  bool large_buckets = false;     ///< The buckets have kLargeBuckets.
  Seconds bound = {};             ///< No such plan has a shorter period with any order of work.
  double amount = 0;              ///< No such plan has a smaller amount of the objective.
  Bytes memory = {};              ///< The fullest device needs at least so much.
  std::string device_types = {};  ///< NetworkParts::device_text() of the devices that it may use.
  int devices = 0;                ///< Devices that it may use.
  bool searches = false;          ///< Its planner searches, which takes longer.
  bool is_unusual = false;        ///< It seldom wins, so it is tried after the others.
  int number = 0;                 ///< Index in PlanVariants::list.
};

struct PlanVariants {
  std::vector<PlanVariant> list;  ///< Smallest amount first.
  /// What the limits of this file leave out, in phrases. untried_plans() adds what the list shows.
  std::set<std::string> left_out;
};

/// Plans for the model, the cluster and the samples in an iteration of an experiment, with every sensible number of
/// stages, replicas and samples in a micro-batch, with and without recomputation: `balanced` on the lists of
/// DeviceOrders for each placement of the schedules, and each other planner on all devices. With costs from shapes:
/// divisions of the whole cluster and of the parts of its network into groups instead, and unless time is the
/// objective, of other numbers of devices; states are divided as the framework has it. Where sequences differ, a
/// micro-batch of a replica is one pack, and `pack_fields` of `data` are chosen too (PackChoices). What else the plan
/// of the experiment says is the same in all of them.
PlanVariants plan_variants(const PlannedExperiment&, const std::vector<const ScheduleDef*>& schedules,
                           const NetworkParts&, const SearchObjective&, const FrameworkLimits&,
                           const std::vector<std::string>& pack_fields = {});

}  // namespace stagecraft
