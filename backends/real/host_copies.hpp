#pragma once

#include <map>
#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::real {

/// Whether it moves a stash to host memory or back, on a stream that computes nothing.
bool is_host_copy(const Program&, const Instruction&);

/// The copies of stashes to host memory that `plan.offload` adds to a Program: how much each moves, and which of them
/// need no more of a computation than its start.
class HostCopies {
 public:
  explicit HostCopies(const Program&);

  bool empty() const { return shares_.empty(); }
  /// The part of the stash of its micro-batch that a copy to the host moves.
  double share(int collective) const { return shares_.at(collective); }
  /// What may begin when this computation does.
  std::span<const InstructionId> from_start_of(InstructionId computation) const;

 private:
  std::map<int, double> shares_;  ///< By collective.
  std::map<InstructionId, std::vector<InstructionId>> from_start_;
};

}  // namespace stagecraft::real
