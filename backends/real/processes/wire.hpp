#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/real/clocks.hpp"
#include "backends/real/device_placement.hpp"
#include "backends/real/remote_members.hpp"
#include "backends/real/transport.hpp"
#include "backends/world.hpp"

namespace stagecraft::real {

/// What a word is about. Words of one kind from one process keep their order; words of another kind may overtake them.
enum class WordKind : std::uint8_t { Ending, Failure, Message, Clock, Pulse, Decision, Report };

/// Carries the messages of a program. Its words go over the wire that made it.
class MessageTransport : public Transport {
 public:
  /// Before the run, when all processes have met. BackendError where one cannot be reached within `seconds`.
  virtual void connect(double /*seconds*/) {}
  /// After the run: waits until every message has left. BackendError after `seconds`.
  virtual void finish(double seconds) = 0;
  void note_failure(const std::string& why) override;
};

/// What connects the processes of a world, such as MPI: words between any two of them, and the messages of runs. Any
/// thread may call it.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual World world() const = 0;
  /// Where a process is, for messages to users; empty where that is not known.
  virtual std::string address(int /*process*/) const { return {}; }

  virtual void post(int to, WordKind, std::string text) = 0;  ///< Does not wait until the text has left.
  /// The next word of a kind from a process, once it has arrived as a whole.
  virtual std::optional<std::string> take(int from, WordKind) = 0;
  virtual bool is_coming(int from, WordKind) = 0;  ///< Whether take() will return a word now or later.
  virtual bool all_left() = 0;  ///< Whether everything that was posted has left for good: this process may end.
  /// A number that changes while bytes come or leave, where that is known.
  virtual std::uint64_t progress() { return 0; }
  /// Why nothing more will come from a process; empty where something may.
  virtual std::string loss(int /*process*/) { return {}; }
  virtual std::string cause(int /*process*/) { return {}; }  ///< How a lost process ended, where that is known here.
  /// Waits a moment, or until something has come.
  virtual void idle(Nap& nap) { nap(); }

  virtual std::unique_ptr<MessageTransport> transport(const Program&, const DevicePlacement&, RemoteBuffers&) = 0;
  /// See remote_members().
  virtual std::unique_ptr<RemoteMembers> members(int first, std::vector<int> owners) = 0;
  /// Whether the launcher sends SIGTERM to all processes when one of them has died.
  virtual bool has_launcher() const = 0;
  /// See leave_world().
  virtual void leave(int code) = 0;
};

Wire& wire();  ///< The wire of the world that this process has joined.

/// The processes of an MPI launcher. BackendError without MPI, and where the launcher is of another MPI.
std::unique_ptr<Wire> open_mpi_wire();

/// The processes that STAGECRAFT_HOSTS names.
std::unique_ptr<Wire> open_tcp_wire();

using Patience = std::chrono::duration<double>;
using Deadline = std::chrono::steady_clock::time_point;
Deadline deadline_after(Patience);
/// How long the others wait where the first waits for that long, so that it is the first that says which process is
/// silent.
constexpr Patience longer(Patience patience) { return 1.5 * patience; }

/// Waits until `holds`; false when the deadline has passed.
bool wait_for(const std::function<bool()>& holds, Deadline);
/// Waits until `holds`; false when no byte has come or left for that long. Large words take long on slow links.
bool wait_while_moving(const std::function<bool()>& holds, Patience);
/// The next word from a process; nothing when the deadline has passed or the process is lost. FailedElsewhere where it
/// tells how it ends instead.
std::optional<std::string> receive_text(int from, WordKind, Deadline);
/// The next word, which may be large, from a process: as receive_text(), but nothing only when no byte has come or left
/// for that long.
std::optional<std::string> receive_large_text(int from, WordKind, Patience);
/// Whether a process from which another word is awaited tells how it ends instead, or that it has failed.
bool is_failing(int process);
/// "process 2 of 4", with its address where that is known.
std::string process_name(int process);

}  // namespace stagecraft::real
