#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/csv.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// Level 10: what runs but may not be what was meant. Warnings, never a reason to refuse:
///   split-backward   I and W apart cannot be run on modules of torch.compile
///   idle-weight      no W runs where its rank would wait, at equal times of all ops, so the split gains nothing
///   overlap          OVERLAP_F_B without a forward or without a backward: PyTorch runs its ops one behind the other
///   timestep         an op stands in a column that is not behind that of its input: the timestep-locked runtime
///                    (PipelineScheduleMulti) needs idle cells between; compute-only files alone
///   exposed          transfers that nothing hides: the op that uses one starts at the moment it is made
///   unsharded        a file with messages and without UNSHARD cannot run stages under FSDP
/// The file has to have passed levels 1 to 4. O(ops).
std::vector<ScheduleProblem> lint(const CsvFile&, const Plan&);

}  // namespace stagecraft
