#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/planners/chain_partition/workload.hpp"

namespace stagecraft::chain_partition {

/// How replicas and stages pay for their messages.
enum class Formula {
  Released,  ///< Sum of compute and an all-reduce of 4(m-1)/m weights; m replicas share the received bytes.
  Paper      ///< The longer of compute and an all-reduce of 2(m-1) weights.
};

/// Machines of one kind next to each other, each made of the machines of the level before.
struct Level {
  int machines = 1;
  double bandwidth = 1;  ///< Bytes a second of each machine.
};

struct PipeDreamOptions {
  std::vector<Level> levels;  ///< Innermost first.
  Formula formula = Formula::Released;
  double transfers = 1;          ///< Share of the bytes between stages that is sent.
  bool straight = false;         ///< Every stage has one replica.
  bool fewer = false;            ///< Machines may stand idle.
  std::optional<double> memory;  ///< Bytes of a machine, a limit on what the released code counts.
  bool trains = true;            ///< False: no gradient is sent or summed, and only one version of weights is kept.
  int most_replicas = std::numeric_limits<int>::max();
  int shared = 0;  ///< Replicas divide this number of micro-batches, which they take in turn; 0: any number will do.

  /// Whether a stage may have this number of replicas, which is the product of its numbers on all levels.
  bool allows(int replicas) const { return replicas <= most_replicas && (shared == 0 || shared % replicas == 0); }
};

/// The layers between two cuts, on these devices.
struct FoundStage {
  int from = 0, to = 0;
  std::vector<int> devices;  ///< Numbered through the levels, innermost first.
};

using FoundPipeline = ChainPipeline<FoundStage>;

/// The fastest pipeline on all machines by the dynamic program of PipeDream; nothing when no pipeline is allowed.
std::optional<FoundPipeline> search_pipedream(const Workload&, const PipeDreamOptions&);

/// Seconds between two micro-batches of stages one after the other, on one level; infinite where memory forbids one.
double period_of(const Workload&, const std::vector<FoundStage>&, const PipeDreamOptions&);

/// Layers on several types of devices: by_type[t] has the layers' seconds on type t, type_of[d] is the type of device
/// d.
struct MixedWork {
  std::vector<Workload> by_type;
  std::vector<int> type_of;

  std::vector<int> counts() const;  ///< Number of devices of each type.
};

/// Stages may have any devices, in any order; replicas wait for the slowest of them. On several levels, a machine has
/// devices of one type, `type_of` has the types of the outermost machines, `inner[t]` has the levels inside a machine
/// of type t, and replicas on the outermost level are of one type, because each type divides its layers differently.
/// On one type the result equals that of the search above, which is faster.
std::optional<FoundPipeline> search_pipedream(const MixedWork&, const PipeDreamOptions&,
                                              const std::vector<std::vector<Level>>& inner = {});
double period_of(const MixedWork&, const std::vector<FoundStage>&, const PipeDreamOptions&);

/// The fastest pipeline on one level, found by trying every division into stages and replicas; nothing when none is
/// allowed. Infeasible when there are more than `max_divisions` divisions.
std::optional<FoundPipeline> search_all(const Workload&, const PipeDreamOptions&, std::int64_t max_divisions);
/// The fastest pipeline on devices of several types; also tries every choice of devices for each stage.
std::optional<FoundPipeline> search_all(const MixedWork&, const PipeDreamOptions&, std::int64_t max_divisions);

}  // namespace stagecraft::chain_partition
