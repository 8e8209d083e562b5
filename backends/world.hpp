#pragma once

#include <exception>
#include <optional>
#include <string>

namespace stagecraft {

/// The processes that a launcher such as mpirun or their user has started together, and which of them this is.
struct World {
  int rank = 0, size = 1;
};

/// The world that the environment describes: STAGECRAFT_HOSTS and STAGECRAFT_RANK, or what a launcher of MPI sets. One
/// process where it describes none.
World launched();
/// Whether launched() are processes that find each other by their hosts, over TCP.
bool are_processes_named();
/// From here on launched() are these processes, "HOST[:PORT],HOST[:PORT],...", of which this is `rank`. InputError
/// where they are malformed.
void name_processes(const std::string& hosts, int rank);
/// InputError where the environment names processes that are malformed.
void check_named_processes();
/// Goes on as that many processes on this machine, which end with this one: it is the first of them. Threads must not
/// have been started.
void fork_local_processes(int count);

/// Whether the network below these processes changes with their run, as the cluster of the scenario does, and waits for
/// its begin: STAGECRAFT_NETWORK_BEGINS is the number of a file to write to then.
bool network_follows_run();
/// The run begins now. Nothing happens unless network_follows_run().
void tell_network();

World world();  ///< The processes that work together after join_world(); only this one before.

/// From here on all that were launched do the same work, up to finish_all(). Nothing happens to a process that is
/// alone. BackendError where a launcher of MPI has started them and this is built without, and where the processes are
/// not the same `build` of this program. A process whose others do not join it in time ends.
void join_world(const std::string& build);

/// How a process ended: its exit code, and what it has to say about it.
struct Ending {
  int code = 0;
  std::string text;
};

/// What this process is to print and return, after hearing how the others ended: all fail when one does, and the first
/// of them says why. Of processes of a launcher that never joined only the first has anything to say.
Ending finish_all(const Ending& ending);
/// Call it after printing the text of finish_all(). After a failure it may not return.
void leave_world(int code);

/// Waits until all processes have called it. Throws FailedElsewhere if another process has failed.
void barrier();

/// Some bytes from another process.
struct Word {
  int from = 0;
  std::string text;
};
void send_message(int rank, std::string text);  ///< Does not wait until it is received.
/// The next word that has arrived as a whole, if any; words from one process keep their order.
std::optional<Word> receive_message();

/// All processes have told each other their results: from here each ends without waiting for the others.
/// `all_present`: no process was lost before.
void end_separately(bool all_present);

std::string mpi_version();  ///< Empty when this is built without MPI.

/// Thrown where there is nothing to add: another process has failed and says why.
class FailedElsewhere : public std::exception {
 public:
  const char* what() const noexcept override { return "another process has failed"; }
};

}  // namespace stagecraft
