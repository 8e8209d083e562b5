#pragma once

#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/synthesis/problem.hpp"

namespace stagecraft::synthesis {

/// One iteration of a known schedule on this plan, without updates.
struct Seed {
  std::string name;
  Schedule iteration;
  bool as_known = true;  ///< With the options that it has when nothing is said.
};

/// Every synchronous schedule of the catalogue that the plan suits, as it is and with some of its options changed:
/// those that take a limit of memory also with as many activations as a rank has room for.
std::vector<Seed> library_seeds(const ScheduleInput&, double activations = kInfinity);

/// One micro-batch after the other, there and back: as little memory as there can be where all stages have as many
/// micro-batches.
Seed one_by_one(const Problem&);

/// Building blocks repeated there and back, where the plan lies so; at most `most` of them.
std::vector<Seed> block_seeds(const ScheduleInput&, double activations, std::size_t most);

}  // namespace stagecraft::synthesis
