#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/real/dealing.hpp"
#include "backends/real/transport.hpp"
#include "backends/real/walk.hpp"

namespace stagecraft::real {

/// What the first process knows about a run in the end; empty in the others.
struct Joint {
  Times times;                    ///< Times of all instructions, on the clock of the first process.
  double uncertainty = 0;         ///< Seconds that times of another process may be off.
  std::vector<std::string> told;  ///< What each process told, by process.
};

/// What this process has to do while the other processes of the world do theirs, with its times, on the steady clock;
/// `tell` is asked in the end. Throws what failed here, or FailedElsewhere.
Joint run_together(const Program&, const Dealing&, const std::function<Times()>& run,
                   const std::function<std::string()>& tell);

/// Walks the devices that are here while the other processes of the world walk theirs.
Joint walk_together(const Program&, const Dealing&, Actions&, Parcels&, const WalkOptions&,
                    const std::function<std::string()>& tell);

/// Sends `own` to all processes and returns what each of them sent, by process. All call this at the same time;
/// FailedElsewhere when one has failed instead.
std::vector<std::string> exchange(const std::string& own);

/// The other processes of a run, for those whose messages do not go through a Transport. While it lives, SIGTERM is
/// only noted.
class Company {
 public:
  Company();
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;
  ~Company();

  /// See Transport::pulse().
  std::optional<Transport::Pulse> pulse(const Transport::Pulse& own);
  bool told_to_stop() const;

 private:
  struct Hidden;
  std::unique_ptr<Hidden> hidden_;
};

}  // namespace stagecraft::real
