#include "backends/real/mpi/stop_signal.hpp"

#include <atomic>

namespace stagecraft::real {
namespace {

std::atomic<bool> told{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // Else a handler might not touch it.

}  // namespace

StopSignal::StopSignal() {
  struct sigaction note {};
  note.sa_handler = [](int) { told.store(true); };
  sigemptyset(&note.sa_mask);
  note.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &note, &before_);
}

StopSignal::~StopSignal() {
  if (!told_to_stop()) sigaction(SIGTERM, &before_, nullptr);
}

bool told_to_stop() { return told.load(); }

}  // namespace stagecraft::real
