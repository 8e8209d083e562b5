#pragma once

#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// Instructions that are enqueued together: one; both ends of a rendezvous; all members of a collective; or the same
/// instruction of a stage on all of its devices, which may meet inside of it. Ascending.
using EnqueueUnit = std::vector<InstructionId>;

/// The order in which a program with groups of devices is enqueued: again and again the unit with the smallest number
/// of those whose inputs were enqueued before. It depends on the program alone, so all processes enqueue in one order.
///
/// All other instructions that these wait for have been enqueued. InternalError when devices of a stage do not run the
/// same instructions in the same order.
std::vector<EnqueueUnit> enqueue_order(const Program&, std::span<const InstructionId>);

}  // namespace stagecraft::cuda
