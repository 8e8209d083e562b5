// Which connections for data a program needs between processes: one for each stream of messages.

#include "backends/real/tcp/lanes.hpp"

#include <algorithm>

namespace stagecraft::real {

std::vector<int> processes_of(const Program& p, const DevicePlacement& placement, const CollectiveCall& c) {
  std::vector<int> processes;
  for (int m = 0; m < c.members; ++m) {
    const int owner = placement.owner(p.at(c.member(m)).device);
    if (std::find(processes.begin(), processes.end(), owner) == processes.end()) processes.push_back(owner);
  }
  return processes;
}

Lanes::Lanes(const Program& p, const DevicePlacement& placement) : p_(p) {
  for (const Transfer& t : p.transfers) {
    const Instruction& send = p.at(t.send);
    const int from = placement.owner(send.device), to = placement.owner(p.at(t.receive).device);
    if (from == to) continue;
    if (from == placement.world().rank) outgoing_.insert({to, lane(send)}), peers_.insert(to);
    if (to == placement.world().rank) peers_.insert(from);
  }
  for (const CollectiveCall& c : p.collectives) {
    const std::vector<int> processes = processes_of(p, placement, c);
    for (int m = 0; m < c.members; ++m)
      for (const int other : processes)
        if (const Instruction& i = p.at(c.member(m)); placement.here(i.device) && other != placement.world().rank)
          outgoing_.insert({other, lane(i)}), peers_.insert(other);
  }
}

int Lanes::lane(const Instruction& sender) const {
  const auto streams = static_cast<int>(p_.streams.size());
  return sender.stream.valid() ? static_cast<int>(sender.stream.value)
                               : streams + static_cast<int>(sender.device.value);
}

std::vector<int> Lanes::peers() const { return {peers_.begin(), peers_.end()}; }

}  // namespace stagecraft::real
