#pragma once

#include <optional>

#include "sim/config/expression.hpp"
#include "sim/sweep/sweep.hpp"

namespace stagecraft {

/// Whether a value of a sweep is computed: `= 32 / plan.stages`, without quotes.
bool is_expression(const config::Value&);

/// Adds a problem for every value of the sweep that begins like an expression and is none.
void check_expressions(const Sweep&, config::Problems&);

/// Reads the conditions of `where:`, a text or a list of texts.
std::vector<SweepCondition> read_conditions(const config::Value& written, config::Problems&);

/// The step with numbers and texts in place of its expressions. A name in them is another setting of the step, a value
/// of --set, or a value that the scenario has in its file. Nothing after a problem.
std::optional<SweepStep> evaluate_step(const SweepStep&, const Sweep&, config::Problems&);

/// Whether a step without expressions meets every condition of `where:`. Nothing after a problem.
std::optional<bool> meets_conditions(const SweepStep&, const Sweep&, config::Problems&);

}  // namespace stagecraft
