// Reads from a Program which part of each stash goes to host memory, and what waits for the start of a computation.

#include "backends/real/host_copies.hpp"

namespace stagecraft::real {

bool is_host_copy(const Program& p, const Instruction& i) {
  return i.stream.valid() && p.streams[i.stream].kind == StreamKind::Copy;
}

HostCopies::HostCopies(const Program& p) {
  std::map<InstructionId, double> stays, moves;  // Bytes by forward, and by the copy that takes them away.
  for (const Buffer& b : p.buffers) {
    if (b.kind == BufferKind::Host) moves[b.allocated_by] = b.size.value;
    if (b.kind == BufferKind::Stash) stays[b.allocated_by] = b.size.value;
  }
  for (int n = 0; n < std::ssize(p.collectives); ++n) {
    const CollectiveCall& c = p.collectives[n];
    if (c.purpose != Purpose::Stash && c.purpose != Purpose::LateForward) continue;
    for (const InstructionId on : p.waits_for(c.first)) {
      if (!p.at(on).is_compute()) continue;
      if (c.after == 0) from_start_[on].push_back(c.first);
      if (const auto part = moves.find(c.first); part != moves.end())
        shares_[n] = part->second / (part->second + stays.at(on));
    }
  }
}

std::span<const InstructionId> HostCopies::from_start_of(InstructionId computation) const {
  const auto members = from_start_.find(computation);
  return members == from_start_.end() ? std::span<const InstructionId>{} : members->second;
}

}  // namespace stagecraft::real
