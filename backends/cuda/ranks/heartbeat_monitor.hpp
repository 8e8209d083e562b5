#pragma once

#include <cstdint>
#include <optional>

#include "backends/cuda/driver.hpp"
#include "backends/real/multi_process_run.hpp"

namespace stagecraft::cuda {

/// Progress of all processes, as a waiting process learns of it.
enum class ProgressEvent : std::uint8_t {
  Alone,  ///< There are no others.
  Still,
  Moved,  ///< Something has moved somewhere.
  Stuck,  ///< Nothing has moved anywhere for too long. All processes learn of it at once.
  Stop,   ///< Whoever started the processes ends them.
  Silent  ///< Some process has not answered for too long.
};

/// The processes of a run: they tell each other ten times a second whether anything moves, has failed or is through.
class HeartbeatMonitor {
 public:
  explicit HeartbeatMonitor(double timeout);

  /// Call it again and again during a wait, with whether anything has moved here. FailedElsewhere when another process
  /// has failed.
  ProgressEvent beat(bool moved);
  /// Waits that report progress to the others, for work such as making connections; BackendError after `seconds`.
  WaitPolicy at_most(double seconds);
  /// Call it after an error that the end of another process may have caused: returns the last event of all processes.
  /// FailedElsewhere when another process has failed.
  ProgressEvent last_event();
  /// See ProcessGroup::common_bits().
  std::optional<std::uint64_t> common_bits(std::uint64_t local) { return processes_.common_bits(local); }
  /// Call it when everything here is over: waits until everything is over in all processes.
  void through();
  /// Tells the others, unless all know already.
  void failed() noexcept;

 private:
  double timeout_;
  real::ProcessGroup processes_;
  real::Transport::Pulse own_;
  bool under_way_ = false, through_ = false, all_through_ = false, over_ = false, moved_ = false;
  double next_ = 0, asked_ = 0, moved_at_ = 0;
};

}  // namespace stagecraft::cuda
