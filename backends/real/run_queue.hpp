#pragma once

#include <optional>
#include <string_view>

namespace stagecraft::real {

/// How long the calling thread was runnable and waited for a core since it began, as Linux counts it. Only the thread
/// that made it may ask. Time that a hypervisor takes from the machine is not in it.
class RunQueue {
 public:
  RunQueue();
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;
  ~RunQueue();

  /// Nothing where the kernel does not count it.
  std::optional<double> seconds() const;

 private:
  int file_;
};

/// What the computations of one thread wait for a core, one after another, from readings of its RunQueue.
class CoreWaitMeter {
 public:
  explicit CoreWaitMeter(double reading) : last_(reading) {}
  /// Before a computation that the thread paused for. One that follows another at once needs no reading, which takes as
  /// long as a small matrix product.
  void add_pause(double reading);
  /// After a computation: the seconds of waiting in it and, beyond what waking takes, before it.
  double finish(double reading);

 private:
  double last_, before_ = 0;
};

/// The second number of the text of /proc/thread-self/schedstat: nanoseconds, here in seconds. Kernels that do not
/// count write zeros; one that counts has given the thread a core at least once, which is the third number.
std::optional<double> run_queue_seconds(std::string_view schedstat);

}  // namespace stagecraft::real
