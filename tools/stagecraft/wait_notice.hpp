#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace stagecraft {

/// Says on stderr what a command is doing, after five seconds and then every ten, so that users can tell whether
/// it hangs. On a terminal that shows the progress of the command itself, or with STAGECRAFT_QUIET
/// in the environment, it says nothing.
class WaitNotice {
 public:
  WaitNotice();
  ~WaitNotice();
  WaitNotice(const WaitNotice&) = delete;
  WaitNotice& operator=(const WaitNotice&) = delete;

 private:
  void watch();

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_condition_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace stagecraft
