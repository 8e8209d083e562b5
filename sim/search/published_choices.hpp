#pragma once

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/output/choice_table.hpp"
#include "sim/search/framework_limits.hpp"
#include "sim/search/network_parts.hpp"
#include "sim/search/search_objective.hpp"

namespace stagecraft {

/// Simulates the published configurations (scenarios/recipes) that apply to the scenario of a search: of the same shape
/// of model, chip, number format and length of a sequence, and of its framework where its software is one. Replicas are
/// added or taken away where the cluster has other numbers of GPUs; the nearest numbers come first, and at most four.
/// Their ids are below zero.
std::vector<PublishedChoice> published_choices(const PlannedExperiment& configured, const std::string& backend,
                                               bool contended, int iterations, const NetworkParts&,
                                               const SearchObjective&, const FrameworkLimits&);

}  // namespace stagecraft
