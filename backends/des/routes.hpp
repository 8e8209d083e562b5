#pragma once

#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::des {

/// The way of every pair in `program.routes`, in that order. A device reaches itself over no hop.
///
/// Every link that is crossed is checked, because network libraries take nonsense without a word: throws InputError
/// when a bandwidth is not above zero or a latency is negative, Infeasible when a pair is not connected.
std::vector<Route> routes_of(const Program& program, const Cluster& cluster);

}  // namespace stagecraft::des
