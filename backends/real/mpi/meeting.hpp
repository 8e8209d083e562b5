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
  Bereft    ///< The same, with some process lost on the way.
};
Standing standing();
void part(bool whole = true);

/// Waits for the endings of all processes. Their sum, on the first with all that there is to say, elsewhere without
/// words; once something has failed nobody is waited for longer than a few seconds, and who is not heard speaks for
/// itself.
Ending meet(const Ending& own);
/// The same where all is well here; FailedElsewhere when it is not so everywhere.
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

bool told_to_stop();  ///< Ever.

}  // namespace stagecraft::real
