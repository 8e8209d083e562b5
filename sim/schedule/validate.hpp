#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// One broken rule. `code` is a stable word: duplicate, missing, out-of-range, wrong-rank, local-order, cycle, ...
struct ScheduleProblem {
  std::string code;
  int level = 0;    ///< 1 syntax, 2 structure, 3 local order, 4 dependencies across devices, 5 messages, 6 rendezvous,
                    ///< 7 memory, 8 sharded weights, 9 weight versions, 10 warnings.
  int rank = -1;    ///< Device of the op, which messages call a rank; -1 when no op is to blame.
  int column = -1;  ///< Its place in the row, from 0.
  std::string op;   ///< "1B1"
  std::string message;  ///< One sentence.
};

/// Problems of one kind that are listed.
inline constexpr std::size_t kMaxListedProblems = 20;

struct ValidateOptions {
  int iterations = 1;
  bool trains = true;                             ///< Every forward needs its backward.
  std::size_t max_problems = kMaxListedProblems;  ///< The number of problems after which checking stops.
  int slices = 1;      ///< Slices of a micro-batch along the sequence: forward in order, backward in reverse.
  bool cycles = true;  ///< Whether level 4 is checked; lower() refuses cycles too, without their place.
};

/// Everything that keeps the schedule from running on the plan; empty when it can run. Level 4, with the shortest
/// cycle, is checked only when levels 2 and 3 hold. O(ops).
std::vector<ScheduleProblem> validate(const Schedule&, const Plan&, const ValidateOptions&);

/// The order in which devices take their next op when every op takes one turn and ranks take turns. Communication is
/// laid out by it. When the schedule deadlocks, `cycle` says why and the order stops there.
///
/// The devices of each set in `joint`, which have equal rows, begin an op when all of them can, because collectives
/// inside the op need all of them. A device is in one set at most.
struct GlobalOrder {
  std::vector<DeviceId> devices;
  std::string cycle;                              ///< Empty when complete.
  std::vector<std::pair<DeviceId, int>> blocked;  ///< Device and index of each op on the cycle.
};
GlobalOrder global_order(const Schedule&, const Plan&, int iterations,
                         const std::vector<std::vector<DeviceId>>& joint = {});

/// "cycle: rank 1, column 3 (1B1): ..." in one line.
std::string to_text(const ScheduleProblem&);
/// The diagnostic of each problem. Of those that differ in the numbers of their ops alone, such as "0B0 never runs" and
/// "1B0 never runs", the first stands for all and says how many more there are.
std::vector<Diagnostic> grouped_diagnostics(const std::vector<ScheduleProblem>&,
                                            const std::function<Diagnostic(const ScheduleProblem&)>& diagnostic);
/// Whether the schedule is well formed but deadlocks, does not fit, or learns with mixed versions: levels 4, 6, 7
/// and 9.
bool cannot_be_done(const ScheduleProblem&);
const char* help_for(int level);  ///< What would help, or "".
/// Throws Infeasible where the first one cannot be done, InputError otherwise.
void throw_if_any(const std::vector<ScheduleProblem>&, const std::string& what);

}  // namespace stagecraft
