#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnosis/rule.hpp"

/// Links between the members of groups, on which their collectives wait.
namespace stagecraft::diagnosis {

using DeviceGroups = std::vector<std::vector<DeviceId>>;

/// The groups whose collectives belong to the passes of a plan: tensor, context and expert groups.
DeviceGroups groups_of_passes(const Plan&);
/// The groups that sum gradients, and gather weights.
DeviceGroups groups_of_sums(const Plan&);

/// One link that is slower than the links of other members in the same position, if it explains most of the `cost` of
/// the collectives of these groups. `collectives` begins its sentence.
std::optional<Finding> slow_group_link(const DiagnosisInput&, const DeviceGroups&, const std::string& collectives,
                                       Seconds cost);

}  // namespace stagecraft::diagnosis
