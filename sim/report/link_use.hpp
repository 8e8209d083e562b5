#pragma once

#include <vector>

#include "sim/report/report.hpp"

namespace stagecraft {

/// How much of each of Report::links is in use in each of so many equal parts of the run: bytes over what its bandwidth
/// carries in that time; 0 where the link is not shared. A message counts as sent evenly while its send lasts.
std::vector<std::vector<double>> link_use(const Program&, const Timeline&, const Cluster&, const Report&, int parts);

}  // namespace stagecraft
