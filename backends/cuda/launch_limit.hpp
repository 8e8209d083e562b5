#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {

/// Seconds on a clock of this thread that stands still while other cooperative threads run; they report that time with
/// skip_seconds().
double thread_seconds();
void skip_seconds(double);

/// Counts the calls that put work into streams, and keeps each stream shorter than the launch queue of the driver. That
/// queue has about 1,024 entries. A call that finds it full blocks inside the driver, where no timeout ends it, and
/// meanwhile the other streams get no work. So the host waits before that, in a way that notices a GPU that is stuck.
/// After every 128 calls, or fewer where streams share a hardware queue, it records an event in the stream, and it
/// waits while more than six such events have not happened.
class LaunchLimit {
 public:
  static constexpr int kQueue = 1024;  ///< Entries of a launch queue, as measured by others on drivers for CUDA 12.
  static constexpr int kHardwareQueues = 32;      ///< The most that CUDA_DEVICE_MAX_CONNECTIONS can ask for.
  static constexpr int kChunk = 128, kMarks = 6;  ///< 128 * (6 + 1) calls at most, and one event for each 128.

  LaunchLimit() = default;
  LaunchLimit(const LaunchLimit&) = delete;
  LaunchLimit& operator=(const LaunchLimit&) = delete;
  ~LaunchLimit();

  /// Streams that share a hardware queue share its entries.
  void share_queues(int streams) { sharing_ = (streams + kHardwareQueues - 1) / kHardwareQueues; }
  void wait_by(WaitPolicy policy) { wait_policy_ = std::move(policy); }
  /// A call put work into the stream, whose GPU is current.
  void submitted(cudaStream_t);
  /// Drops all marks; only when no work is left in any stream.
  void forget();

  std::int64_t calls() const { return calls_; }  ///< All calls so far.
  double waited() const { return waited_; }      ///< Seconds spent waiting until streams were short enough.

 private:
  struct Stream {
    int calls = 0;                  ///< Since the last mark.
    std::deque<cudaEvent_t> marks;  ///< Not known to have happened.
  };
  cudaEvent_t new_mark();

  std::map<cudaStream_t, Stream> streams_;
  std::map<int, std::deque<cudaEvent_t>> free_;  ///< Events to use again, by GPU.
  WaitPolicy wait_policy_ = at_most(300);
  int sharing_ = 1;
  std::int64_t calls_ = 0;
  double waited_ = 0;
};

/// While it lives, calls of this thread are counted by this limit, or by none if it is null, as in a capture.
class LimitedLaunches {
 public:
  explicit LimitedLaunches(LaunchLimit*);
  LimitedLaunches(const LimitedLaunches&) = delete;
  LimitedLaunches& operator=(const LimitedLaunches&) = delete;
  ~LimitedLaunches();

 private:
  LaunchLimit* before_;
};

/// A call put work into the stream. With STAGECRAFT_CUDA_SYNC=1 it is waited for, so that an error names the call that
/// caused it; `what` is the name of the call.
void submitted(cudaStream_t, const char* what);
/// An event was recorded or waited for in the stream, which takes an entry of its queue, too.
void submitted_event(cudaStream_t);

}  // namespace stagecraft::cuda
