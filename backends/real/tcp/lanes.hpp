#pragma once

#include <set>
#include <utility>
#include <vector>

#include "backends/real/device_placement.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::real {

/// The connections for data of a program: one for each stream from which this process sends to another. Instructions of
/// a device that are in no stream share one.
class Lanes {
 public:
  Lanes(const Program&, const DevicePlacement&);

  int lane(const Instruction& sender) const;
  const std::set<std::pair<int, int>>& outgoing() const { return outgoing_; }  ///< Process and lane.
  std::vector<int> peers() const;  ///< The processes with which this one exchanges messages.

 private:
  const Program& p_;
  std::set<std::pair<int, int>> outgoing_;
  std::set<int> peers_;
};

/// The processes that have members of a collective, in the order of their first members.
std::vector<int> processes_of(const Program&, const DevicePlacement&, const CollectiveCall&);

}  // namespace stagecraft::real
