#pragma once

#include <string>
#include <vector>

#include "sim/sweep/table.hpp"

namespace stagecraft {

/// Short labels of a table's points: if all values of a path are maps, only the entries that differ, without their
/// keys. The page of a sweep has the same labels.
std::vector<std::string> short_labels(const SweepTable&);

}  // namespace stagecraft
