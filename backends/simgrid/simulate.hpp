#pragma once

#include <span>
#include <string>

#include "backends/simgrid/engine/tasks.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::sg {

/// Loads the module that calls SimGrid, once in a process. BackendError if it or SimGrid is not found.
///
/// It is not linked, because SimGrid and the 30 libraries that Debian's SimGrid needs take 80 ms of CPU time to load,
/// and most commands do not need them.
const Tasks& load_library();

/// See Tasks.
void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end);
std::string library_version();

}  // namespace stagecraft::sg
