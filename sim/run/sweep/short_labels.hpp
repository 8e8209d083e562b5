#pragma once

#include <string>
#include <vector>

#include "sim/run/sweep/table.hpp"

namespace stagecraft {

/// The labels of a table's points where room is short: where all values of a path are maps, by what not all of them say
/// alike, without its keys; as the page of a sweep has them.
std::vector<std::string> short_labels(const SweepTable&);

}  // namespace stagecraft
