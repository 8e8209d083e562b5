#pragma once

#include <map>
#include <span>
#include <vector>

#include "backends/real/stage_net.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::real {

/// Whether it moves a stash to host memory or back, on a stream that computes nothing.
bool is_host_copy(const Program&, const Instruction&);

/// What a copy to the host moves of a stash.
struct StashPart {
  double share = 1;  ///< The part of all its bytes.
  double bytes = 0;
};

/// What goes to the host where only inputs of modules do: values that operations read, as is_input_of() names them, and
/// what norms keep in place of their input: its normalized rows with a number for each, by node.
struct ModuleInputs {
  std::vector<int> values, norms;
};
ModuleInputs module_inputs(const StageNet&, const Workload&);

/// The copies of stashes to host memory that `plan.offload` adds to a Program: how much each moves, and which of them
/// need no more of a computation than its start.
class HostCopies {
 public:
  explicit HostCopies(const Program&);

  bool empty() const { return parts_.empty(); }
  /// The part of the stash of its micro-batch that a copy moves.
  const StashPart& part(int collective) const { return parts_.at(collective); }
  /// What may begin when this computation does.
  std::span<const InstructionId> from_start_of(InstructionId computation) const;

 private:
  std::map<int, StashPart> parts_;  ///< By collective.
  std::map<InstructionId, std::vector<InstructionId>> from_start_;
};

}  // namespace stagecraft::real
