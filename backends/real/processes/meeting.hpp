#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "backends/real/processes/wire.hpp"
#include "backends/world.hpp"

// How the processes of a world wait for each other, and how all of them end when one fails. `world.cpp`, the wires and
// runs of several processes call it.

namespace stagecraft::real {

/// What this process knows of the processes that it has joined. All go from Working to Failed or Separated together.
enum class WorldState {
  Working,
  Failed,            ///< Each process knows how the command ends.
  Unreachable,       ///< Failed, and some process does not answer.
  Separated,         ///< All have told what they did; each process ends without waiting for the others.
  SeparatedWithLoss  ///< Separated, but some process was lost before.
};
WorldState world_state();
void set_separated(bool all_present = true);

/// Waits for the endings of all processes and returns their sum: with all texts on the first process, without text on
/// the others. After a failure it waits only a few seconds; a process that is not heard prints its own text. Without a
/// failure it waits for `patience`, on the others longer, so that the first says which process is silent.
Ending gather_endings(const Ending& ending, Patience patience);
/// Waits until all processes have called it. Throws FailedElsewhere if another process has failed, BackendError if one
/// is silent.
void barrier(Patience patience);
/// How long this process waits for others that do the same work: half a minute, and ten times as long as its own work
/// took from the start.
Patience patience_for_equals();

/// The run has begun: a process that is silent for that long ends it, and after a failure all processes have as long
/// again to end.
void set_run_patience(Patience);
Patience patience_after_failure();  ///< How long one wait may last then.
/// This process has failed and ends with `code` after the patience of the run at the latest, wherever it hangs then; it
/// prints the text unless forget_last_words() comes first. Later calls change the text alone.
void limit_the_end(const Ending&);
void forget_last_words();  ///< The text has been printed.

/// BackendError where another process is another build of this program, FailedElsewhere where that is said elsewhere.
void require_same_build(const std::string& build);

/// While it lives, a process whose others do not come ends with a reason: MPI itself waits for them without limit, as
/// when one of them has too little memory to start.
class JoinAlarm {
 public:
  JoinAlarm();
  ~JoinAlarm();
  JoinAlarm(const JoinAlarm&) = delete;
  JoinAlarm& operator=(const JoinAlarm&) = delete;
};

/// While it lives, SIGTERM is only noted where there is a launcher that sends it when another process has died: mpirun
/// does, a moment before SIGKILL.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

 private:
  std::optional<struct sigaction> before_;
};

bool stop_requested_by_launcher();  ///< Whether a StopSignal has ever noted SIGTERM.

}  // namespace stagecraft::real
