#pragma once

#include <span>

#include "sim/cluster/cluster.hpp"
#include "sim/core/quantity.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::fluid {

/// Plays `program` from time 0 and writes the start and end of every instruction; equal inputs give equal bits.
///
/// `routes` come from des::routes_of, which has checked the links. BackendError after `timeout` of wall time, unless
/// that is zero.
void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end, Seconds timeout = {});

/// simulate() for clusters of which some links have one queue: each message moves in chunks, and the words of
/// handshakes wait in queues. Infeasible with devices that share memory, and if the chunks are more than a computer can
/// follow.
void simulate_queues(const Program& program, const Cluster& cluster, std::span<const Route> routes,
                     std::span<double> start, std::span<double> end, Seconds timeout = {});

}  // namespace stagecraft::fluid
