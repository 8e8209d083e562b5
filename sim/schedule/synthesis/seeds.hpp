#pragma once

#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/synthesis/scheduling_problem.hpp"

namespace stagecraft::synthesis {

/// One iteration of a known schedule on this plan, without updates.
struct SeedOrder {
  std::string name;
  Schedule iteration;
  bool as_known = true;  ///< Made with its default options.
};

/// Every synchronous schedule of the catalog that fits the plan, with its defaults and with other values of some
/// options: schedules with a limit of memory also with as many activations as a rank has room for.
std::vector<SeedOrder> library_seeds(const ScheduleInput&, double activations = kInfinity);

/// One micro-batch after the other, forward and back: the least memory that is possible when all stages have equally
/// many micro-batches.
SeedOrder one_by_one(const SchedulingProblem&);

/// Repeated V-shaped building blocks, when the plan has a V placement; at most `limit` of them.
std::vector<SeedOrder> block_seeds(const ScheduleInput&, double activations, std::size_t limit);

}  // namespace stagecraft::synthesis
