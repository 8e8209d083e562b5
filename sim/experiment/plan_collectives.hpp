#pragma once

#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// A collective that a stage of a plan needs, as its price sees it.
struct PlanCollective {
  CollectiveUse use = CollectiveUse::Ops;
  CollectiveKind kind = CollectiveKind::AllReduce;
  GroupShape group;
  Bytes bytes{};
};

/// Every collective of a stage on devices of this type that the rules of cost price, among more than one device.
std::vector<PlanCollective> collectives_of(const PlannedExperiment&, const Stage&, DeviceTypeId);

}  // namespace stagecraft
