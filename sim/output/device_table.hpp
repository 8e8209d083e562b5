#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/output/table.hpp"
#include "sim/program/program.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// A row for each device that has a stage: how busy it is, and its memory.
std::string device_table(const Report&, const Cluster&, const TextLayout&);

/// A row for each device on which a real run allocated memory.
std::string measured_memory_table(const Learnt&, const Cluster&, const TextLayout&);

}  // namespace stagecraft
