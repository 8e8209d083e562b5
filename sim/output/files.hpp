#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/config/columns.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// One row for each instruction.
std::string spans_csv(const Program&, const Timeline&, const Report&, const Cluster&);
std::vector<FileColumn> spans_columns();

/// One row for each change of a device's memory. Devices that are not used have no rows; the others begin at time 0.
std::string memory_csv(const Program&, const Timeline&, const Report&, const Cluster&);
std::vector<FileColumn> memory_csv_columns();

/// losses.csv: the loss of every iteration of a real run.
std::string losses_csv(const Learnt&);
std::vector<FileColumn> losses_columns();

}  // namespace stagecraft
