#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

/// The table that `stagecraft run` prints: the numbers of the run, then one row for each device.
std::string summary_text(const Program&, const Report&, const Cluster&);

/// What only a real run knows: losses, and the memory that was really taken.
std::string learnt_text(const Learnt&, const Cluster&);

}  // namespace stagecraft
