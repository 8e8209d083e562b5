#pragma once

#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/collective_curve.hpp"
#include "sim/config/value.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The fields of a cluster that name measured collectives.
std::vector<config::Field> curve_fields_of_cluster();

/// Puts the curves that `collectives` of a checked cluster names in its place, checked, so that a resolved scenario
/// stands alone.
void expand_curves(config::Value& cluster, config::Problems&);

/// The curves of a checked cluster that are of a device type. InputError where two are of the same collective among as
/// many devices on as many nodes.
std::vector<CollectiveCurve> curves_of(const config::Value& cluster, const DeviceType&);

/// Which collectives of a plan take their time from the curves of the cluster, and which from the constants of the
/// device type or the links: a line for each, and one where none can. Empty without curves.
std::vector<std::string> notes_on_curves(const PlannedExperiment&);

}  // namespace stagecraft
