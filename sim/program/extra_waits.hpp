#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft {

/// A wait that is added to a finished program.
struct ExtraWait {
  InstructionId waiting, on;
};

/// What each instruction waits for in addition, in the order of `extra`.
IdVector<InstructionId, std::vector<InstructionId>> by_instruction(const Program&, std::span<const ExtraWait> extra);

/// The order in which a program with extra waits can be numbered: again and again the instruction with the smallest
/// number of those that have all they wait for. Both ends of a rendezvous, and the members of a collective, stay next
/// to each other. Shorter than the program where waits form a cycle. O(waits + n log n).
std::vector<InstructionId> order_with(const Program&, std::span<const ExtraWait>);

/// Numbers the instructions in such an order, and the transfers in the order of their sends, and adds the waits.
void renumber(Program&, std::span<const InstructionId> order, std::span<const ExtraWait>);

/// Why instructions that `order` lacks can never start: a shortest cycle among the first of them, in one line.
std::string cycle_text(const Program&, std::span<const InstructionId> order, std::span<const ExtraWait>);

}  // namespace stagecraft
