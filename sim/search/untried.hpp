#pragma once

#include <string>
#include <vector>

#include "sim/search/plan_variants.hpp"
#include "sim/search/policies.hpp"

namespace stagecraft {

/// What a search over these plans leaves out, in phrases: "tensor degrees other than 1, 2 and 4". They follow from the
/// plans: a value that the model and the devices allow, and that no plan has.
std::vector<std::string> untried_plans(const PlannedExperiment&, const PlanVariants&);

/// What a search with these orders of work leaves out: "orders that are searched for (synthesised)". `without_weights`:
/// schedules that do not go with `weights`, the policy of the scenario.
std::vector<std::string> untried_orders(const std::vector<SchedulingPolicy>&,
                                        const std::vector<std::string>& without_weights, const std::string& weights);

}  // namespace stagecraft
