#pragma once

#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/ranks/heartbeat_monitor.hpp"

namespace stagecraft::cuda {

/// Checks whether enqueued work has ended, without ever blocking in the driver.
class CompletionWatch {
 public:
  CompletionWatch(const Program& program, const InstructionEvents& events, double timeout);

  /// Sets what is called again and again during a wait, with whether anything has ended since the last call.
  void listen(std::function<ProgressEvent(bool moved)> beat) { beat_ = std::move(beat); }
  /// Sets what is called before the host looks again.
  void between_looks(std::function<void()> work) { between_looks_ = std::move(work); }
  /// Limits error messages to the devices of this process, when there are several processes.
  void only(std::function<bool(DeviceId)> here) { here_ = std::move(here); }

  /// Waits until at most `max_marks` pieces of work are in flight in the queue.
  void keep_up(int queue, std::size_t max_marks);
  /// Waits until all queues are empty.
  void finish();
  /// Waits until `done()`; BackendError when nothing has ended for `timeout` seconds.
  void until(const std::function<bool()>& done);

 private:
  bool poll(std::size_t queue);  ///< Whether anything has ended.
  [[noreturn]] void stuck() const;
  std::string whereabouts() const;
  ProgressEvent news_of_all(bool moved) const;
  void throw_if_over(ProgressEvent) const;

  const Program& p_;
  const InstructionEvents& events_;
  double timeout_;
  std::function<ProgressEvent(bool moved)> beat_ = [](bool) { return ProgressEvent::Alone; };
  std::function<void()> between_looks_ = [] {};
  std::function<bool(DeviceId)> here_ = [](DeviceId) { return true; };
  std::vector<std::size_t> next_;  ///< First unfinished piece of work in each queue.
};

}  // namespace stagecraft::cuda
