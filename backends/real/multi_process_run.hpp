#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/real/device_placement.hpp"
#include "backends/real/program_executor.hpp"
#include "backends/real/transport.hpp"

namespace stagecraft::real {

/// What the first process knows about a run in the end; empty in the others.
struct CollectedRun {
  Times times;                       ///< Times of all instructions, on the clock of the first process.
  double uncertainty = 0;            ///< Seconds that times of another process may be off.
  std::vector<std::string> reports;  ///< What each process told, by process.
};

/// What this process has to do while the other processes of the world do theirs, with its times, on the steady clock;
/// `report` is called in the end. Throws what failed here, FailedElsewhere, or BackendError where another process is
/// silent for `timeout` seconds.
CollectedRun run_together(const Program&, const DevicePlacement&, double timeout, const std::function<Times()>& run,
                          const std::function<std::string()>& report);

/// Walks the devices that are here while the other processes of the world walk theirs.
CollectedRun run_program_together(const Program&, const DevicePlacement&, Actions&, RemoteBuffers&,
                                  const ExecutorOptions&, const std::function<std::string()>& report);

/// Sends `text` to all processes and returns what each of them sent, by process. All call this at the same time;
/// FailedElsewhere when one has failed instead.
std::vector<std::string> all_gather_texts(const std::string& text);

/// The other processes of a run, for those whose messages do not go through a Transport. While it lives, SIGTERM is
/// only noted.
class ProcessGroup {
 public:
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
  ~ProcessGroup();

  /// See Transport::pulse().
  std::optional<Transport::Pulse> pulse(const Transport::Pulse& local);
  bool stop_requested_by_launcher() const;
  /// Gives the others these bits, unless it has done so; returns the bits that all processes have set once all have
  /// given theirs.
  std::optional<std::uint64_t> common_bits(std::uint64_t local);

 private:
  struct Hidden;
  std::unique_ptr<Hidden> hidden_;
};

}  // namespace stagecraft::real
