#pragma once

#include <string>
#include <vector>

#include "sim/config/fields.hpp"

namespace stagecraft {

// Everything about older forms of a scenario. What reads a scenario after this knows the newest form alone.

/// The field `schema` of a scenario.
config::Field schema_field();

/// Gives a scenario that is not checked yet the newest form. A number in the `group` of a stage becomes `consecutive`.
/// A scenario/1, which counts the samples of a micro-batch of all replicas together, becomes an equal scenario/2; it is
/// a problem where replicas cannot divide them. False: the check of the fields fails, so the version stays as it is.
bool to_newest_form(config::Value& scenario, config::Problems& problems);

/// The options of the command line, then options that a command chose itself, which are for the newest form.
std::vector<std::string> with_chosen_options(std::vector<std::string> sets, const std::vector<std::string>& chosen);

/// What people should know of a scenario that had an older form.
std::vector<std::string> older_form_notes(const config::Value& scenario);

}  // namespace stagecraft
