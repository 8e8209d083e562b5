#pragma once

#include "sim/program/program.hpp"

namespace stagecraft {

/// The instructions that start together, which have consecutive numbers: both ends of a rendezvous, the members of a
/// collective, or one instruction alone.
struct StartGroup {
  InstructionId first;
  int count = 1;

  InstructionId at(int k) const { return InstructionId{first.value + k}; }
};

inline StartGroup start_group(const Program& program, InstructionId id) {
  const Instruction& i = program.at(id);
  if (i.kind == InstructionKind::Collective) {
    const CollectiveCall& collective = program.collective(i);
    return {collective.first, collective.members};
  }
  if (i.is_message() && program.rendezvous) return {program.transfer(i).send, 2};
  return {id, 1};
}

}  // namespace stagecraft
