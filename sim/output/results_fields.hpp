#pragma once

#include <string>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"

namespace stagecraft {

/// The fields of results.json, schema results/1. `stagecraft schema results` prints them as a JSON Schema.
const config::MapSpec& results_fields();

/// Where the numbers come from, and how a schedule was found: parts of several files.
const config::MapSpec& provenance_fields();
const config::MapSpec& search_fields();

/// Reads results.json of a run. Throws InputError with the line and the field where the text is anything else than what
/// results_json() writes, such as an edited file.
Json read_results(const std::string& text, const std::string& file);

}  // namespace stagecraft
