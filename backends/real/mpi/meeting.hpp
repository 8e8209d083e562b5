#pragma once

#include <csignal>
#include <string>

#include "backends/world.hpp"

namespace stagecraft::real {

/// Where a process of a joined world stands. They go from Working to Failed or Parted together.
enum class Standing {
  Working,
  Failed,   ///< All know how it ends.
  Unheard,  ///< Failed, and some process does not answer.
  Parted,   ///< All have told what they did; each ends for itself.
  Bereft    ///< Parted, but some process was lost on the way.
};
Standing standing();
void part(bool whole = true);

/// Waits for the endings of all processes and returns their sum: with all texts on the first process, without text on
/// the others. After a failure it waits only a few seconds; a process that is not heard speaks for itself.
Ending meet(const Ending& ending);
/// Meets with success in this process; FailedElsewhere when another process has failed.
void meet();

/// While it lives, SIGTERM is only noted: mpirun sends it when another process has died, a moment before SIGKILL.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

 private:
  struct sigaction before_ {};
};

bool stop_requested_by_launcher();  ///< Whether a StopSignal has ever noted SIGTERM.

}  // namespace stagecraft::real
