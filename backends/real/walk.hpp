#pragma once

#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::real {

/// What instructions do. Called by the thread that finds them ready; computations of one device never at once.
class Actions {
 public:
  virtual ~Actions() = default;
  virtual void compute(InstructionId) = 0;
  virtual void carry(int transfer) = 0;
  virtual void reduce(int collective) = 0;
};

/// Carries messages to and from devices of other processes.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual bool here(DeviceId) const = 0;
  virtual void send(int transfer) = 0;                            ///< The message is made.
  virtual void receive(int transfer) = 0;                         ///< Its receive may start.
  virtual void reduce(int collective, InstructionId member) = 0;  ///< A member that is here may start.
  struct Finished {
    InstructionId instruction;
    double start = 0;
  };
  /// What has ended since the last call; by one thread at a time.
  virtual void poll(std::vector<Finished>&) = 0;
};

struct WalkOptions {
  double timeout = 30;  ///< Seconds without any progress after which a run is stuck.
  bool one_thread = false;
};

struct Times {
  std::vector<double> start, end;  ///< Seconds since the first thread began; zero for instructions elsewhere.
};

/// Executes a Program: each instruction when all it waits for has ended, one thread a device, pinned to a core where
/// there are enough of them. A message is carried by whichever thread finds both of its ends ready; a reduction by the
/// one that finds the last member ready. Throws BackendError that names what every device waits for when nothing moves
/// any more, and what an instruction throws.
Times walk(const Program&, Actions&, Transport*, const WalkOptions&);

/// The instructions that devices stopped at, and what those wait for: for messages about stuck runs.
std::string waiting(const Program&, const std::vector<bool>& ended);

}  // namespace stagecraft::real
