#pragma once

#include <span>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::sg {

/// Plays `program` in this process from time 0 and writes the start and end of every instruction.
///
/// `routes` come from des::routes_of, which has checked the links. SimGrid is a singleton whose clock never goes
/// back and which aborts on its own errors: call this once in a process, or in run_in_child.
void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end);

/// Version of the SimGrid library in use, such as "3.32".
std::string library_version();

}  // namespace stagecraft::sg
