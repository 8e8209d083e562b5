#pragma once

#include <optional>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/program/program.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// What failures cost a long training on these devices, where the scenario says nothing of failures: by the rates of
/// published trainings, with a checkpoint of the weights and the state of the optimizer. Nothing for runs without
/// tokens, for runs of few devices, and where `report.failures` has rates.
std::optional<Json> expected_failures(const Program&, const Report&);
/// The member `expected_failures` of results.json.
config::Field expected_failures_field();

}  // namespace stagecraft
