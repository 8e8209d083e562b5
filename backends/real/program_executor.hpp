#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/real/transport.hpp"
#include "sim/program/program.hpp"

// The interpreter of real backends: starts each instruction of a Program when all that it waits for has ended, on a
// thread for each device or on one thread for all. What an instruction does is the caller's (Actions).

namespace stagecraft::real {

struct Times {
  double origin = 0;                           ///< When the first thread began, on the steady clock.
  IdVector<InstructionId, double> start, end;  ///< Seconds since then; zero for instructions elsewhere.
  IdVector<InstructionId, double> core_waits;  ///< See Timeline; empty where the kernel does not tell.
  double uncertainty = 0;                      ///< Seconds that `origin` may be off, where another clock was read.
};

/// What instructions do. Called by the thread that finds them ready; computations of one device never at once.
class Actions {
 public:
  virtual ~Actions() = default;
  virtual void compute(InstructionId) = 0;
  virtual void carry(int transfer) = 0;
  virtual void collective(int index) = 0;  ///< All of its members are ready.
  /// What compute() calls for a member of a collective that no longer needs the rest of the computation: the first
  /// bucket of gradients, for example. Empty: members wait for the end.
  using PartDone = std::function<void(InstructionId computation, InstructionId member)>;
  virtual void when_part_done(PartDone) {}
  /// The times of the run, as they become known, for what depends on when that ended which an instruction waits for.
  virtual void follow_times(const Times&) {}
  /// Threads in compute() that wait for other devices of their group, which is no progress.
  virtual int waiting() const { return 0; }
  virtual void interrupt() {}  ///< The run has ended or failed: no thread may wait in compute() any more.
};

struct ExecutorOptions {
  double timeout = 30;  ///< Seconds without any progress after which a run is stuck.
  bool one_thread = false;
};

/// Executes a Program: each instruction when all it waits for has ended, one thread a device, pinned to a core where
/// there are enough of them and no other processes, and one for each stream of copies to host memory. A message is
/// carried by whichever thread finds both of its ends ready; a collective by the one that finds the last member ready.
/// Throws BackendError that names what every device waits for when nothing moves any more, what an instruction throws,
/// and FailedElsewhere when another process failed.
Times run_program(const Program&, Actions&, Transport*, const ExecutorOptions&);

/// The instructions that the devices in question stopped at, and what those wait for: for messages about stuck runs.
std::string waiting(const Program&, const std::vector<bool>& ended, const std::function<bool(DeviceId)>& here);

}  // namespace stagecraft::real
