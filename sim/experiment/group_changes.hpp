#pragma once

#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The devices that work together with `leader`, itself among them; it alone where it leads no group.
std::vector<DeviceId> group_led_by(const Plan&, DeviceId leader);

/// The cluster with every change of a member of a group as a change of the device that stands for the group, because
/// the members wait for each other. InputError for changes of different members at the same time: how slow the group
/// is then depends on both.
Cluster with_changes_of_groups(const Cluster&, const Plan&);

/// That cluster for the plan of an experiment, on which its program runs.
Cluster cluster_of_program(const PlannedExperiment&);

}  // namespace stagecraft
