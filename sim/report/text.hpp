#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

/// The table that `stagecraft run` prints: the numbers of the run, then one row for each device.
/// `measured`: times are of a real run; memory and traffic are those of the program in any case, and are called so.
std::string summary_text(const Program&, const Report&, const Cluster&, bool measured = false);

/// What only a real run knows: losses, and the memory that was really taken.
std::string learnt_text(const Learnt&, const Cluster&);
/// What it took the host to tell a GPU.
std::string enqueued_text(const Enqueued&);

}  // namespace stagecraft
