#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/ties.hpp"

namespace stagecraft {

/// What a device has of a tie: at its place in groups that hold the weights, whose gradients are added up on it, and
/// its place in a ring. Without a ring, its groups have all there is.
struct Holding {
  struct Place {
    StageId group;
    int place = 0;
  };
  std::vector<Place> groups;
  StageId stage;  ///< The first on the device.
  int ring = -1, place = 0;
};

/// Who adds up gradients with whom before an update: the replicas of a stage, and those of the stage that holds a copy
/// of the same weights, which are its group; then those that hold weights tied to some of them.
class GradientGroups {
 public:
  explicit GradientGroups(const Plan&);
  /// The first stage of the group, by which it is known.
  StageId of(StageId s) const { return first_[s]; }
  /// Devices of the group, each once: those of the first stage, then those of the other. One alone exchanges nothing.
  const std::vector<DeviceId>& devices(StageId s) const { return devices_[of(s)]; }
  bool exchanges(StageId s) const { return devices(s).size() > 1; }
  /// Place of a device of the group among its devices.
  int place_of(StageId, DeviceId) const;

  /// For tied weights, in the order of the ties.
  const std::vector<TieRing>& rings() const { return rings_; }
  /// Of a stage: indices into Plan::ties, of those between groups.
  const std::vector<int>& ties(StageId s) const { return ties_[s]; }
  const Holding& holding(int tie, DeviceId device) const { return holdings_[tie][device]; }
  /// Groups that hold tied weights are updated in one round, on the same devices too; it is known by the first stage
  /// of the first of them.
  StageId round(StageId s) const { return round_[s]; }
  bool tied(StageId s) const { return round_devices_[round(s)].size() > 0; }
  /// Devices that have to come to their updates before any of the round can run; one where none is waited for.
  const std::vector<DeviceId>& round_devices(StageId s) const {
    return tied(s) ? round_devices_[round(s)] : devices(s);
  }
  bool waits(StageId s) const { return tied(s) || exchanges(s); }

 private:
  void join_rounds(const Plan&);
  void hold(const Plan&, int tie, const std::vector<StageId>& groups);

  std::vector<StageId> first_, round_;
  std::vector<std::vector<DeviceId>> devices_;
  std::vector<std::vector<DeviceId>> round_devices_;  ///< Of rounds with tied weights, by their first stage.
  std::vector<TieRing> rings_;
  std::vector<std::vector<int>> ties_;          ///< Of each stage.
  std::vector<std::vector<Holding>> holdings_;  ///< Of each tie between groups, by device.
};

}  // namespace stagecraft
