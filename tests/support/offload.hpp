#pragma once

#include <functional>

#include "sim/program/offload.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::test {

inline constexpr double kStash = 1e9;  ///< Bytes of each stash.

/// Gives each device its host; a whole stash of kStash bytes takes `down` seconds to it and `up` back.
inline void add_hosts(Cluster& cluster, double down, double up, bool full_duplex = true) {
  const auto add = [&](double seconds) {
    Link link;
    link.name = "host link " + std::to_string(cluster.links.size());
    link.bandwidth = Bandwidth{kStash / seconds};
    link.duplex = Duplex::Half;
    return cluster.links.push_back(link);
  };
  for (Device& d : cluster.devices) {
    d.host_memory = static_cast<int>(cluster.memories.size());
    cluster.memories.push_back({d.host, Bytes{1e15}});
    d.down = add(down);
    d.up = full_duplex ? add(up) : d.down;
  }
}

/// How stashes move.
struct Moves {
  OffloadShare share;
  int ahead = 1;
  bool late = false;
};

/// Checked.
inline Program offloaded(Program program, const Plan& plan, const Cluster& cluster, const Moves& moves) {
  Timeline base = run_ideal(program, cluster);
  if (moves.late) {
    program = with_late_forwards(std::move(program), base);
    base = run_ideal(program, cluster);
  }
  program = with_offloaded_stashes(std::move(program), plan, cluster, base, moves.ahead, moves.share);
  check_program(program);
  return program;
}

inline OffloadShare same_share(double share) {
  return [share](const Instruction&) { return share; };
}

/// Forward, backward and a stash.
inline StageCost stashing(double forward, double backward) {
  StageCost cost = times(forward, backward);
  cost.memory.stash = Bytes{kStash};
  return cost;
}

}  // namespace stagecraft::test
