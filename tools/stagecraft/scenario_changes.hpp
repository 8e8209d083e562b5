#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// The fields that differ between the resolved scenarios in these folders, one line for each: the path, then the value
/// in each run. Empty where a folder has no scenario.yaml, or nothing differs.
std::string scenario_changes_text(const std::vector<std::string>& folders);

}  // namespace stagecraft
