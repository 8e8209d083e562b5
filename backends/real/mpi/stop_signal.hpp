#pragma once

#include <csignal>

namespace stagecraft::real {

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
