#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft::test {

/// The most messages of one edge and direction that a device holds at the same time. The messages that one op reads, or
/// makes, count as one.
struct HeldMessages {
  int received = 0;  ///< From the start of a transfer to the end of the op that reads it.
  int outgoing = 0;  ///< From the start of the op that makes it to the end of its transfer.
};

inline HeldMessages held_messages(const Program& program, const Timeline& timeline) {
  struct Interval {
    double first = 1e300, last = 0;
  };
  using Key = std::tuple<bool, int, TensorRole, DeviceId>;
  std::map<Key, std::map<InstructionId, Interval>> in_use;
  for (const Transfer& t : program.transfers) {
    const TransferShape& shape = program.shape(t);
    Interval& in = in_use[{true, shape.edge, shape.role, program.at(t.receive).device}][t.consumer];
    in.first = std::min(in.first, timeline.start[t.receive]);
    in.last = std::max(in.last, timeline.end[t.consumer]);
    Interval& out = in_use[{false, shape.edge, shape.role, program.at(t.send).device}][t.producer];
    out.first = std::min(out.first, timeline.start[t.producer]);
    out.last = std::max(out.last, timeline.end[t.send]);
  }
  HeldMessages peak;
  for (const auto& [key, intervals] : in_use) {
    std::vector<std::pair<double, int>> changes;  // What ends at a moment makes room for what starts then.
    for (const auto& [op, interval] : intervals)
      changes.emplace_back(interval.first, 1), changes.emplace_back(interval.last, -1);
    std::sort(changes.begin(), changes.end());
    int now = 0;
    int& highest = std::get<0>(key) ? peak.received : peak.outgoing;
    for (const auto& [time, change] : changes) highest = std::max(highest, now += change);
  }
  return peak;
}

}  // namespace stagecraft::test
