#pragma once

#include <string>

#include "sim/core/json.hpp"
#include "sim/search/evaluation.hpp"

namespace stagecraft {

/// A trial as JSON, for files and other processes. What the plan says of the choice is not in it.
Json json_of(const std::string& settings, const Trial&);
Trial trial_from(const Json&);

/// What a trial showed, with what its plan says of it.
Trial with_properties(Trial, const Combination&);

/// A candidate without its plan, as JSON. The reader knows the variant.
Json json_of(const Candidate&);
Candidate candidate_from(const Json&, const PlanVariant&);

}  // namespace stagecraft
