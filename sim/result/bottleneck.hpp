#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// What holds a run up, in a few words for a row of a table: "the work of gpu3", "the link core", "waiting for each
/// other". It needs no other runs, unlike a Diagnosis.
std::string bottleneck_text(const Report&, const Cluster&);

}  // namespace stagecraft
