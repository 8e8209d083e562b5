#pragma once

#include "sim/config/fields.hpp"

namespace stagecraft {

/// trace.json: what chrome_trace() writes.
const config::MapSpec& trace_fields();
/// validation.json, schema validation/1: what validation_json() writes.
const config::MapSpec& validation_fields();
/// What `stagecraft schedule --format json` prints: schedule_json() and the findings of its checks.
const config::MapSpec& order_fields();

}  // namespace stagecraft
