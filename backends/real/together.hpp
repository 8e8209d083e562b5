#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/real/dealing.hpp"
#include "backends/real/walk.hpp"

namespace stagecraft::real {

/// What the first process knows about a run in the end; empty in the others.
struct Joint {
  Times times;                    ///< Of all instructions, on the clock of the first process.
  double uncertainty = 0;         ///< Seconds that times of another process may be off.
  std::vector<std::string> told;  ///< By each process.
};

/// What this process has to do while the other processes of the world do theirs, with its times, on the steady clock;
/// `tell` is asked in the end. Throws what failed here, or FailedElsewhere.
Joint run_together(const Program&, const Dealing&, const std::function<Times()>& run,
                   const std::function<std::string()>& tell);

/// Walks the devices that are here while the other processes of the world walk theirs.
Joint walk_together(const Program&, const Dealing&, Actions&, Parcels&, const WalkOptions&,
                    const std::function<std::string()>& tell);

}  // namespace stagecraft::real
